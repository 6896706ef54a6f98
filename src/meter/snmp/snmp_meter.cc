#include "meter/snmp/snmp_meter.h"

#include "meter/budget.h"
#include "meter/open.h"
#include "meter/point.h"
#include "meter/secret.h"
#include "meter/snmp/value.h"

#if FLYBALL_WITH_NETSNMP
#include <net-snmp/net-snmp-config.h>
// Its headers rely on the order.
#include <fmt/format.h>
#include <net-snmp/net-snmp-includes.h>

#include <mutex>
#endif

namespace flyball::meter {

#if FLYBALL_WITH_NETSNMP
namespace {

constexpr int kSnmpPort = 161;
/// Objects in one question: the answer then fits in the 1,472 bytes that pass without fragments, with room for text.
constexpr std::size_t kMostObjects = 24;
constexpr std::string_view kDescription = "1.3.6.1.2.1.1.1.0";  // SNMPv2-MIB sysDescr
constexpr std::string_view kName = "1.3.6.1.2.1.1.5.0";         // SNMPv2-MIB sysName
constexpr std::string_view kDate = "1.3.6.1.2.1.25.1.2.0";      // HOST-RESOURCES-MIB hrSystemDate

/// Once a process: neither configuration nor MIB files are read, nothing is kept and nothing is printed.
void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    snmp_disable_log();
    ::setenv("MIBS", "", 1);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DONT_READ_CONFIGS, 1);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DISABLE_CONFIG_LOAD, 1);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DONT_PERSIST_STATE, 1);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, 1);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE, 1);
    init_snmp("flyball");
  });
}

struct Close {
  void operator()(void* session) const { snmp_sess_close(session); }
};

SnmpValue value_of(const netsnmp_variable_list& variable) {
  SnmpValue made;
  switch (variable.type) {
    case ASN_INTEGER:
      made.kind = SnmpKind::integer;
      made.integer = *variable.val.integer;
      break;
    case ASN_GAUGE:
    case ASN_COUNTER:
    case ASN_TIMETICKS:
      made.kind = SnmpKind::counter;
      made.counter = static_cast<std::uint32_t>(*variable.val.integer);
      break;
    case ASN_COUNTER64:
      made.kind = SnmpKind::counter;
      made.counter = static_cast<std::uint64_t>(variable.val.counter64->high & 0xffffffffUL) << 32 |
                     (variable.val.counter64->low & 0xffffffffUL);
      break;
    case ASN_OPAQUE_FLOAT:
      made.kind = SnmpKind::number;
      made.number = static_cast<double>(*variable.val.floatVal);
      break;
    case ASN_OPAQUE_DOUBLE:
      made.kind = SnmpKind::number;
      made.number = *variable.val.doubleVal;
      break;
    case ASN_OCTET_STR:
      made.kind = SnmpKind::text;
      made.text.assign(reinterpret_cast<const char*>(variable.val.string), variable.val_len);
      break;
    case SNMP_NOSUCHOBJECT:
      made.kind = SnmpKind::no_object;
      break;
    case SNMP_NOSUCHINSTANCE:
    case SNMP_ENDOFMIBVIEW:
      made.kind = SnmpKind::no_instance;
      break;
    default:
      break;
  }
  return made;
}

class SnmpMeter final : public Meter {
 public:
  SnmpMeter(const Profile& profile, NumericAddress address, Secret password, Secret privacy, Clock& clock)
      : profile_(profile),
        address_(std::move(address)),
        password_(std::move(password)),
        privacy_(std::move(privacy)),
        clock_(clock) {}

  std::vector<MeterReading> read() override {
    const Budget budget(clock_, profile_.timeout);
    std::vector<MeterReading> made = all_absent(profile_, Status::missing, "not asked", clock_);
    for (std::size_t first = 0; first < made.size(); first += kMostObjects) {
      const std::size_t end = std::min(made.size(), first + kMostObjects);
      std::vector<std::string> oids;
      for (std::size_t i = first; i < end; ++i) oids.push_back(profile_.points[i].oid);
      const RequestTime time(clock_);
      const auto values =
          budget.over() ? fail(ErrorCode::failed, "no time left within meter.timeout") : get(oids, budget.left());
      for (std::size_t i = first; i < end; ++i) {
        made[i].measured = time.middle();
        made[i].received = clock_.now();
        if (!values) {
          set_absent(made[i], Status::failed, values.error().what);
          continue;
        }
        const SnmpNumber number = snmp_number((*values)[i - first], profile_.points[i]);
        made[i].raw = number.raw;
        if (number.said.ok()) {
          set_value(made[i], profile_.points[i], *number.said);
        } else {
          set_absent(made[i], number.said.status, number.reason);
        }
      }
    }
    return made;
  }

  Result<Identity> identify() override {
    FLYBALL_ASSIGN(const auto values, get({std::string(kDescription), std::string(kName)}, profile_.timeout));
    Identity identity;
    for (const char c : values[0].text.substr(0, 200)) {
      if (c >= ' ' && c <= '~') identity.model += c;
    }
    identity.serial = values[1].text.substr(0, 80);
    return identity;
  }

  Result<ClockPair> device_clock() override {
    const RequestTime time(clock_);
    FLYBALL_ASSIGN(const auto values, get({std::string(kDate)}, profile_.timeout));
    if (values[0].kind != SnmpKind::text) return Meter::device_clock();
    FLYBALL_ASSIGN(const WallTime device, date_and_time(values[0].text));
    return ClockPair{device, time.middle(), time.elapsed() * 0.5 + Seconds(1)};
  }

 private:
  using Library = Result<std::vector<SnmpValue>>;

  Result<> open(Seconds timeout) {
    start_library();
    session_.reset();
    netsnmp_session wanted;
    snmp_sess_init(&wanted);
    const bool v6 = address_.host.find(':') != std::string::npos;
    std::string peer = v6 ? fmt::format("udp6:[{}]:{}", address_.host, address_.port)
                          : fmt::format("udp:{}:{}", address_.host, address_.port);
    wanted.peername = peer.data();
    wanted.retries = 0;
    wanted.timeout = static_cast<long>(timeout.value() * 1e6);
    std::string community = password_.reveal();
    std::string user = profile_.user;
    if (profile_.snmp.version == 2) {
      wanted.version = SNMP_VERSION_2c;
      wanted.community = reinterpret_cast<u_char*>(community.data());
      wanted.community_len = community.size();
    } else {
      wanted.version = SNMP_VERSION_3;
      wanted.securityName = user.data();
      wanted.securityNameLen = user.size();
      FLYBALL_TRY(set_security(wanted));
    }
    session_.reset(snmp_sess_open(&wanted));
    explicit_bzero(community.data(), community.size());
    if (!session_) return fail(ErrorCode::failed, "no session: " + error_of(wanted), profile_.id);
    return {};
  }

  Result<> set_security(netsnmp_session& wanted) const {
    wanted.securityLevel = SNMP_SEC_LEVEL_NOAUTH;
    if (profile_.snmp.auth.empty()) return {};
    wanted.securityLevel = SNMP_SEC_LEVEL_AUTHNOPRIV;
    wanted.securityAuthProto = usmHMACSHA1AuthProtocol;
    wanted.securityAuthProtoLen = OID_LENGTH(usmHMACSHA1AuthProtocol);
    if (profile_.snmp.auth == "SHA-256") {
      wanted.securityAuthProto = usmHMAC192SHA256AuthProtocol;
      wanted.securityAuthProtoLen = OID_LENGTH(usmHMAC192SHA256AuthProtocol);
    } else if (profile_.snmp.auth == "SHA-512") {
      wanted.securityAuthProto = usmHMAC384SHA512AuthProtocol;
      wanted.securityAuthProtoLen = OID_LENGTH(usmHMAC384SHA512AuthProtocol);
    }
    wanted.securityAuthKeyLen = USM_AUTH_KU_LEN;
    FLYBALL_TRY(make_key(wanted, password_, wanted.securityAuthKey, wanted.securityAuthKeyLen));
    if (profile_.snmp.privacy.empty()) return {};
    wanted.securityLevel = SNMP_SEC_LEVEL_AUTHPRIV;
    wanted.securityPrivProto = usmAESPrivProtocol;
    wanted.securityPrivProtoLen = OID_LENGTH(usmAESPrivProtocol);
    wanted.securityPrivKeyLen = USM_PRIV_KU_LEN;
    return make_key(wanted, privacy_, wanted.securityPrivKey, wanted.securityPrivKeyLen);
  }

  Result<> make_key(const netsnmp_session& wanted, const Secret& phrase, u_char* key, std::size_t& length) const {
    const auto* bytes = reinterpret_cast<const u_char*>(phrase.reveal().data());
    const int code = generate_Ku(wanted.securityAuthProto, static_cast<u_int>(wanted.securityAuthProtoLen), bytes,
                                 phrase.reveal().size(), key, &length);
    if (code == SNMPERR_SUCCESS) return {};
    return fail(ErrorCode::input, "a phrase of SNMPv3 has eight characters at least", profile_.id);
  }

  static std::string error_of(const netsnmp_session& session) {
    int system = 0;
    int library = 0;
    char* text = nullptr;
    netsnmp_session copy = session;
    snmp_error(&copy, &system, &library, &text);
    std::string made = text == nullptr ? "unknown" : text;
    SNMP_FREE(text);
    return made;
  }

  Result<std::vector<SnmpValue>> get(const std::vector<std::string>& oids, Seconds timeout) {
    FLYBALL_TRY(open(timeout));
    netsnmp_pdu* request = snmp_pdu_create(SNMP_MSG_GET);
    for (const std::string& text : oids) {
      const auto parsed = parse_oid(text);
      const std::vector<oid> name(parsed.begin(), parsed.end());
      if (!name.empty()) snmp_add_null_var(request, name.data(), name.size());
      if (name.empty()) {
        snmp_free_pdu(request);
        return fail(ErrorCode::input, "'" + text + "' is no numeric object", profile_.id);
      }
    }
    netsnmp_pdu* answer = nullptr;
    const int status = snmp_sess_synch_response(session_.get(), request, &answer);
    const std::unique_ptr<netsnmp_pdu, void (*)(netsnmp_pdu*)> owner(answer, snmp_free_pdu);
    if (status == STAT_TIMEOUT) {
      return fail(ErrorCode::failed, fmt::format("no answer from {}:{}", address_.host, address_.port), profile_.id,
                  "a wrong community or user is not answered either");
    }
    if (status != STAT_SUCCESS || answer == nullptr) {
      return fail(ErrorCode::failed, error_of(*snmp_sess_session(session_.get())), profile_.id);
    }
    if (answer->command == SNMP_MSG_REPORT || answer->errstat != SNMP_ERR_NOERROR) {
      return fail(ErrorCode::failed,
                  fmt::format("the device refuses: {}", snmp_errstring(static_cast<int>(answer->errstat))),
                  profile_.id);
    }
    std::vector<SnmpValue> made;
    for (const auto* at = answer->variables; at != nullptr; at = at->next_variable) made.push_back(value_of(*at));
    if (made.size() != oids.size()) return fail(ErrorCode::failed, "the device answered another question", profile_.id);
    return made;
  }

  Profile profile_;
  NumericAddress address_;
  Secret password_;
  Secret privacy_;
  Clock& clock_;
  std::unique_ptr<void, Close> session_;
};

}  // namespace

Result<std::unique_ptr<Meter>> make_snmp_meter(const Profile& profile, Clock& clock) {
  FLYBALL_ASSIGN(NumericAddress address, parse_numeric_address(profile.address, kSnmpPort));
  FLYBALL_ASSIGN(Secret password, load_secret(profile.password, "community or authentication phrase"));
  FLYBALL_ASSIGN(Secret privacy, load_secret(profile.privacy_password, "privacy phrase"));
  if (profile.snmp.version == 2 && password.empty()) {
    return fail(ErrorCode::input, "SNMP v2c needs a community", profile.id, "set meter.password_file or _env");
  }
  return std::make_unique<SnmpMeter>(profile, std::move(address), std::move(password), std::move(privacy), clock);
}

#else

Result<std::unique_ptr<Meter>> make_snmp_meter(const Profile&, Clock&) { return fail(left_out("SNMP", "libsnmp-dev")); }

#endif

}  // namespace flyball::meter
