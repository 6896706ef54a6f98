#include "guard/protocol.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace flyball::guard {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 8;
constexpr std::array kVerbs = {Verb::hello, Verb::acquire, Verb::renew, Verb::write, Verb::release, Verb::restore,
                               Verb::lift,  Verb::status,  Verb::meter, Verb::allow, Verb::disallow};

auto bad(std::string what) { return fail(ErrorCode::input, std::move(what), "request"); }

/// Brackets outside of strings: the parser recurses, so depth is looked at before it runs.
bool is_shallow(std::string_view line) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

Result<Json> parse_line(std::string_view line) {
  if (line.size() > kLongestLine) return bad(fmt::format("a line is longer than {} bytes", kLongestLine));
  if (!is_shallow(line)) return bad(fmt::format("deeper than {} levels", kDeepest));
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return bad("not a JSON object");
  return json;
}

/// Reads the fields of one object; the first that is of the wrong kind is the error.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  const std::optional<Error>& error() const { return error_; }

  std::string text(const char* name, std::string fallback = {}) {
    const Json* value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_string() || value->get_ref<const std::string&>().size() > 4096)
      return wrong(name, "a string"), fallback;
    return value->get<std::string>();
  }
  std::uint64_t number(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned()) return wrong(name, "a whole number of 0 or more"), 0;
    return value->get<std::uint64_t>();
  }
  std::optional<double> real(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) return wrong(name, "a number"), std::nullopt;
    return value->get<double>();
  }
  bool flag(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return wrong(name, "true or false"), false;
    return value->get<bool>();
  }
  std::optional<Milliwatts> limit(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer()) return wrong(name, "whole milliwatts"), std::nullopt;
    return Milliwatts(value->get<std::int64_t>());
  }
  Sample<Milliwatts> sample(const char* name) {
    const auto value = limit(name);
    return value ? Sample<Milliwatts>(*value) : Sample<Milliwatts>();
  }
  DeviceId device(const char* name) {
    const auto id = DeviceId::parse(text(name));
    if (!id) fail_with(id.error());
    return id ? *id : DeviceId();
  }
  std::vector<DeviceId> devices(const char* name) {
    std::vector<DeviceId> ids;
    for (const Json& entry : list(name)) {
      const auto id = DeviceId::parse(entry.is_string() ? entry.get<std::string>() : std::string());
      if (!id) return fail_with(id.error()), ids;
      ids.push_back(*id);
    }
    return ids;
  }
  template <class Enum, std::size_t size>
  Enum word(const char* name, const std::array<Enum, size>& all, Enum fallback) {
    const std::string text_value = text(name, std::string(to_string(fallback)));
    for (const Enum value : all) {
      if (to_string(value) == text_value) return value;
    }
    fail_with({ErrorCode::input, fmt::format("'{}' is not a {}", text_value.substr(0, 40), name), "request", ""});
    return fallback;
  }
  const Json& list(const char* name) {
    static const Json empty = Json::array();
    constexpr std::size_t kMost = 1024;
    const Json* value = find(name);
    if (value == nullptr) return empty;
    if (!value->is_array() || value->size() > kMost) return wrong(name, "a list of up to 1024"), empty;
    return *value;
  }
  void fail_with(Error error) {
    if (!error_) error_ = std::move(error);
  }

 private:
  const Json* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  void wrong(const char* name, const char* expected) {
    fail_with({ErrorCode::input, fmt::format("'{}' must be {}", name, expected), "request", ""});
  }

  const Json& json_;
  std::optional<Error> error_;
};

Json to_json(const std::optional<Milliwatts>& limit) { return limit ? Json(limit->value()) : Json(nullptr); }
Json to_json(const Sample<Milliwatts>& limit) { return limit.ok() ? Json(limit.value.value()) : Json(nullptr); }
Json to_json(const Sample<Watts>& power) { return power.ok() ? Json(power.value.value()) : Json(nullptr); }

Json to_json(const std::vector<DeviceId>& devices) {
  Json list = Json::array();
  for (const DeviceId& device : devices) list.push_back(device.text());
  return list;
}

std::string line_of(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n"; }

WriteRequest parse_write(const Json& json, Fields& outer) {
  WriteRequest write;
  if (!json.is_object())
    return outer.fail_with({ErrorCode::input, "each write must be an object", "request", ""}), write;
  Fields fields(json);
  write.device = fields.device("device");
  write.power_limit = fields.limit("power_limit_mw");
  const auto low = fields.real("clock_low_hz");
  const auto high = fields.real("clock_high_hz");
  if (low && high) write.locked_clocks = ClockRange{Hertz(*low), Hertz(*high)};
  if (low.has_value() != high.has_value()) {
    fields.fail_with({ErrorCode::input, "clocks need both ends", write.device.text(), ""});
  }
  write.unlock_clocks = fields.flag("unlock_clocks");
  if (fields.error()) outer.fail_with(*fields.error());
  return write;
}

}  // namespace

std::string_view to_string(Verb verb) {
  constexpr std::array<std::string_view, kVerbs.size()> kWords = {
      "hello", "acquire", "renew", "write", "release", "restore", "lift", "status", "meter", "allow", "disallow"};
  return kWords[static_cast<std::size_t>(verb)];
}

std::string encode(const Request& request) {
  Json json;
  json["v"] = kProtocolVersion;
  json["id"] = request.id;
  json["verb"] = to_string(request.verb);
  switch (request.verb) {
    case Verb::acquire:
      json["kind"] = to_string(request.acquire.kind);
      json["authority"] = to_string(request.acquire.authority);
      json["devices"] = to_json(request.acquire.devices);
      json["time_to_live_s"] = request.acquire.time_to_live.value();
      json["purpose"] = request.acquire.purpose;
      json["sticky"] = request.acquire.sticky;
      break;
    case Verb::renew:
    case Verb::release:
      json["lease"] = request.lease;
      break;
    case Verb::write:
      json["lease"] = request.lease;
      json["writes"] = Json::array();
      for (const WriteRequest& write : request.writes) {
        Json entry;
        entry["device"] = write.device.text();
        if (write.power_limit) entry["power_limit_mw"] = write.power_limit->value();
        if (write.locked_clocks) entry["clock_low_hz"] = write.locked_clocks->low.value();
        if (write.locked_clocks) entry["clock_high_hz"] = write.locked_clocks->high.value();
        if (write.unlock_clocks) entry["unlock_clocks"] = true;
        json["writes"].push_back(std::move(entry));
      }
      break;
    case Verb::restore:
      json["reason"] = request.reason;
      break;
    case Verb::lift:
      json["devices"] = to_json(request.devices);
      break;
    case Verb::meter:
      json["meter_w"] = to_json(request.meter);
      json["gpu_sum_w"] = to_json(request.gpu_sum);
      break;
    case Verb::allow:
      json["devices"] = to_json(request.devices);
      [[fallthrough]];
    case Verb::disallow:
      json["uid"] = request.uid;
      break;
    case Verb::hello:
    case Verb::status:
      break;
  }
  return line_of(json);
}

Result<Request> parse_request(std::string_view line, std::uint64_t& id) {
  FLYBALL_ASSIGN(const Json json, parse_line(line));
  Fields fields(json);
  Request request;
  request.id = id = fields.number("id");
  const std::uint64_t version = fields.number("v");
  if (fields.error()) return fail(*fields.error());
  if (version != kProtocolVersion) {
    return fail(ErrorCode::input, fmt::format("version {} is not spoken here", version), "request",
                fmt::format("speak version {}", kProtocolVersion));
  }
  request.verb = fields.word("verb", kVerbs, Verb::hello);
  if (!json.contains("verb")) return bad("no verb");
  if (request.verb == Verb::acquire) {
    constexpr std::array kKinds = {LeaseKind::saving, LeaseKind::budget};
    constexpr std::array kAuthorities = {Authority::job, Authority::fleet, Authority::site};
    request.acquire.kind = fields.word("kind", kKinds, LeaseKind::saving);
    request.acquire.authority = fields.word("authority", kAuthorities, Authority::job);
    request.acquire.devices = fields.devices("devices");
    request.acquire.time_to_live = Seconds(fields.real("time_to_live_s").value_or(10));
    request.acquire.purpose = fields.text("purpose");
    request.acquire.sticky = fields.flag("sticky");
  }
  request.lease = fields.number("lease");
  if (request.verb == Verb::write)
    for (const Json& entry : fields.list("writes")) request.writes.push_back(parse_write(entry, fields));
  request.reason = fields.text("reason");
  if (request.verb == Verb::lift || request.verb == Verb::allow) request.devices = fields.devices("devices");
  if (const auto power = fields.real("meter_w")) request.meter = Watts(*power);
  if (const auto power = fields.real("gpu_sum_w")) request.gpu_sum = Watts(*power);
  const std::uint64_t uid = fields.number("uid");
  if (uid > 0xffffffffULL) return bad("'uid' is no user id");
  request.uid = static_cast<std::uint32_t>(uid);
  if (fields.error()) return fail(*fields.error());
  return request;
}

namespace {

Json to_json(const WriteOutcome& outcome) {
  Json json;
  json["device"] = outcome.device.text();
  json["state"] = to_string(outcome.state);
  json["asked_mw"] = outcome.asked.value();
  json["accepted_mw"] = outcome.accepted.value();
  json["enforced_mw"] = to_json(outcome.enforced);
  json["reason"] = outcome.reason;
  return json;
}

Json to_json(const RestoreOutcome& outcome) {
  Json json;
  json["device"] = outcome.device.text();
  json["restored"] = outcome.restored;
  json["left_to_other"] = outcome.left_to_other;
  json["found_mw"] = to_json(outcome.found);
  json["now_mw"] = to_json(outcome.now);
  json["reason"] = outcome.reason;
  return json;
}

std::string_view word_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::failed:
      return "failed";
    case ErrorCode::input:
      return "input";
    case ErrorCode::refused:
      return "refused";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::degraded:
      return "degraded";
  }
  return "failed";
}

Error parse_error(const Json& json) {
  Error error;
  if (!json.is_object()) return {ErrorCode::failed, "the guard's error is not readable", "", ""};
  Fields fields(json);
  const std::string word = fields.text("code");
  for (const ErrorCode code : {ErrorCode::input, ErrorCode::refused, ErrorCode::unsupported, ErrorCode::degraded}) {
    if (word_of(code) == word) error.code = code;
  }
  error.what = fields.text("what");
  error.where = fields.text("where");
  error.remedy = fields.text("remedy");
  return error;
}

}  // namespace

std::string encode(const Response& response) {
  Json json;
  json["v"] = kProtocolVersion;
  json["id"] = response.id;
  json["ok"] = !response.error;
  if (response.error) {
    json["error"] = {{"code", word_of(response.error->code)},
                     {"what", response.error->what},
                     {"where", response.error->where},
                     {"remedy", response.error->remedy}};
    return line_of(json);
  }
  if (response.lease != 0) json["lease"] = response.lease;
  for (const WriteOutcome& outcome : response.writes) json["writes"].push_back(to_json(outcome));
  for (const RestoreOutcome& outcome : response.restores) json["restores"].push_back(to_json(outcome));
  if (!response.status.empty()) json["status"] = Json::parse(response.status, nullptr, false);
  return line_of(json);
}

Result<Response> parse_response(std::string_view line) {
  FLYBALL_ASSIGN(const Json json, parse_line(line));
  Fields fields(json);
  Response response;
  response.id = fields.number("id");
  if (!fields.flag("ok")) {
    response.error = parse_error(json.contains("error") ? json["error"] : Json());
    return response;
  }
  response.lease = fields.number("lease");
  for (const Json& entry : fields.list("writes")) {
    if (!entry.is_object()) return bad("an outcome is not an object");
    Fields of(entry);
    constexpr std::array kStates = {WriteState::applied, WriteState::unchanged, WriteState::deferred,
                                    WriteState::refused, WriteState::failed};
    WriteOutcome outcome{of.device("device"),
                         of.word("state", kStates, WriteState::failed),
                         of.limit("asked_mw").value_or(Milliwatts(0)),
                         of.limit("accepted_mw").value_or(Milliwatts(0)),
                         of.sample("enforced_mw"),
                         of.text("reason")};
    if (of.error()) return fail(*of.error());
    response.writes.push_back(std::move(outcome));
  }
  for (const Json& entry : fields.list("restores")) {
    if (!entry.is_object()) return bad("an outcome is not an object");
    Fields of(entry);
    RestoreOutcome outcome{of.device("device"),   of.flag("restored"), of.flag("left_to_other"),
                           of.sample("found_mw"), of.sample("now_mw"), of.text("reason")};
    if (of.error()) return fail(*of.error());
    response.restores.push_back(std::move(outcome));
  }
  if (json.contains("status")) response.status = json["status"].dump();
  if (fields.error()) return fail(*fields.error());
  return response;
}

std::string status_document(const Engine& engine, WallTime now) {
  Json json;
  json["schema"] = "flyball.guard_status/1";
  json["at"] = format_rfc3339(now);
  json["leases"] = engine.leases();
  json["restoring"] = engine.restoring();
  json["over_budget"] = engine.over_budget();
  json["alarms"] = engine.alarms();
  const EngineCounters& counters = engine.counters();
  json["counters"] = {{"writes", counters.writes},
                      {"writes_failed", counters.writes_failed},
                      {"restores", counters.restores},
                      {"restores_failed", counters.restores_failed},
                      {"left_to_other", counters.left_to_other},
                      {"closed_after_reload", counters.closed_after_reload},
                      {"leases_expired", counters.leases_expired},
                      {"drift_seen", counters.drift_seen},
                      {"drift_rewrites", counters.drift_rewrites},
                      {"audit_lost", counters.audit_lost}};
  json["boards"] = Json::array();
  for (const BoardStatus& board : engine.boards()) {
    Json entry;
    entry["device"] = board.device.text();
    entry["state"] = to_string(board.state);
    entry["held"] = board.held;
    entry["kind"] = board.held ? Json(to_string(board.kind)) : Json(nullptr);
    entry["parked"] = board.parked;
    entry["leases"] = board.leases;
    entry["found_mw"] = to_json(board.found);
    entry["accepted_mw"] = to_json(board.accepted);
    entry["requested_mw"] = to_json(board.requested);
    entry["enforced_mw"] = to_json(board.enforced);
    entry["external_limit_mw"] = to_json(board.external_limit);
    entry["drift"] = to_string(board.drift);
    entry["drift_rewrites"] = board.drift_rewrites;
    entry["yielded"] = board.yielded;
    entry["failures"] = board.failures;
    entry["restoring"] = board.restoring;
    entry["reason"] = board.reason;
    json["boards"].push_back(std::move(entry));
  }
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string restore_document(const std::vector<RestoreOutcome>& outcomes) {
  Json json;
  json["schema"] = "flyball.restore/1";
  json["boards"] = Json::array();
  for (const RestoreOutcome& outcome : outcomes) json["boards"].push_back(to_json(outcome));
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace flyball::guard
