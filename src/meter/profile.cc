#include "meter/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "base/text.h"
#include "meter/profile_words.h"

namespace flyball::meter {
namespace {

constexpr std::size_t kMostPoints = 1000;
constexpr std::size_t kMostFaults = 20;

/// Of "file:12"; 0 where there is none.
std::int64_t line_of(std::string_view where) {
  const auto colon = where.rfind(':');
  return colon == std::string_view::npos ? 0 : parse_int(where.substr(colon + 1)).value_or(0);
}

/// Keys of a point that only some protocols have.
struct Belongs {
  std::string_view key;
  std::string_view protocols;
};
constexpr Belongs kBelongs[] = {
    {"register", "modbus"}, {"table", "modbus"}, {"type", "modbus"},         {"order", "modbus"},
    {"sentinel", "modbus"}, {"oid", "snmp"},     {"absent", "snmp csv"},     {"path", "redfish"},
    {"pointer", "redfish"}, {"column", "csv"},   {"selector", "prometheus"}, {"sensor", "ipmi"},
};
constexpr std::string_view kNeeded[] = {"register type", "oid", "path pointer", "sensor", "selector", "column"};

class ProfileReader {
 public:
  ProfileReader(const Config::Partial& file, std::string name)
      : config_(file.config), name_(std::move(name)), faults_(file.faults) {}

  tl::expected<Profile, std::vector<Error>> read() {
    read_meter();
    read_commissioned();
    for (const std::string& point : config_.names("point")) read_point(point);
    if (made_.points.size() > kMostPoints) {
      add("point", fmt::format("{} points are more than {}", made_.points.size(), kMostPoints), "split the profile");
    }
    check_access();
    if (!faults_.empty()) return tl::unexpected(first_faults());
    return std::move(made_);
  }

 private:
  void add(const std::string& path, const std::string& what, std::string remedy = {}) {
    if (config_.refused(path)) return;  // told already
    faults_.push_back({ErrorCode::input, path + ": " + what, place_of(path), std::move(remedy)});
  }
  /// The line that sets the path; of one that is missing, where its section begins.
  std::string place_of(const std::string& path) {
    if (std::string where = config_.where(path); where != "default") return where;
    if (sections_.empty()) {
      for (const Config::Entry& entry : config_.entries()) {
        if (entry.where == "default") continue;
        std::string& place = sections_[entry.path.substr(0, entry.path.rfind('.'))];
        if (place.empty() || line_of(entry.where) < line_of(place)) place = entry.where;
      }
    }
    const auto found = sections_.find(path.substr(0, path.rfind('.')));
    return found == sections_.end() ? name_ : found->second;
  }
  std::vector<Error> first_faults() {
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const Error& a, const Error& b) { return line_of(a.where) < line_of(b.where); });
    if (faults_.size() > kMostFaults) {
      const std::size_t more = faults_.size() - kMostFaults;
      faults_.resize(kMostFaults);
      faults_.push_back(
          {ErrorCode::input, fmt::format("{} more faults are not shown", more), name_, "mend these first"});
    }
    return std::move(faults_);
  }
  void add(const std::string& path, const Error& error) { add(path, error.what, error.remedy); }

  std::string text(const std::string& path) const { return config_.text(path).value_or(""); }

  std::string needed(const std::string& path) {
    std::string value = text(path);
    if (value.empty()) add(path, "is missing");
    return value;
  }

  /// The place of the word in `words`; 0 where nothing is said.
  template <class Enum>
  Enum word(const std::string& path, std::span<const std::string_view> words, const std::string& said) {
    if (said.empty()) return Enum{};
    const auto found = std::find(words.begin(), words.end(), said);
    if (found == words.end()) add(path, fmt::format("'{}' is none of {}", said, fmt::join(words, ", ")));
    return found == words.end() ? Enum{} : static_cast<Enum>(found - words.begin());
  }

  Scope scope(const std::string& path, Scope otherwise) {
    const std::string said = text(path);
    if (said.empty()) return otherwise;
    const auto parsed = parse_scope(said);
    if (!parsed) add(path, parsed.error());
    return parsed.value_or(otherwise);
  }

  SecretPlace secret(const std::string& key) {
    SecretPlace place{text(key + "_file"), text(key + "_env")};
    if (!place.file.empty() && !place.variable.empty()) add(key + "_env", "excludes " + key + "_file");
    return place;
  }

  void read_meter() {
    made_.id = needed("meter.id");
    made_.protocol = word<Protocol>("meter.protocol", protocol_words(), needed("meter.protocol"));
    made_.source = needed("meter.source");
    made_.address = text("meter.address");
    made_.timeout = config_.duration("meter.timeout").value_or(Seconds(2));
    made_.scope = scope("meter.scope", Scope::unknown);
    made_.user = text("meter.user");
    made_.password = secret("meter.password");
    made_.privacy_password = secret("meter.privacy_password");
    made_.ca_file = text("meter.ca_file");
    made_.unit_id = static_cast<int>(config_.whole("meter.unit_id").value_or(1));
    made_.register_base = static_cast<int>(config_.whole("meter.register_base").value_or(0));
    made_.snmp.version = static_cast<int>(config_.whole("meter.snmp_version").value_or(2));
    made_.snmp.auth = text("meter.snmp_auth");
    made_.snmp.privacy = text("meter.snmp_privacy");
    made_.time_column = text("meter.time_column");
    made_.zone = text("meter.zone");
    made_.stale_after = config_.duration("meter.stale_after").value_or(Seconds(60));
    made_.window = config_.duration("meter.window").value_or(Seconds(300));
  }

  void read_commissioned() {
    made_.commissioned.at = text("commissioned.at");
    made_.commissioned.identity = text("commissioned.identity");
    if (const auto offset = config_.number("commissioned.clock_offset_s")) {
      made_.commissioned.clock_offset = Seconds(*offset);
    }
  }

  /// What would send a password where everybody can read it, or could never be used.
  void check_access() {
    const bool http = made_.address.starts_with("http://");
    if (made_.protocol == Protocol::redfish && !made_.address.empty() && !made_.address.starts_with("https://")) {
      add("meter.address", "Redfish is spoken over https only", "write https://…");
    }
    if (made_.protocol == Protocol::prometheus && http && made_.password.named()) {
      add("meter.address", "a password would go over http", "write https://…");
    }
    if (!made_.snmp.privacy.empty() && made_.snmp.auth.empty()) {
      add("meter.snmp_privacy", "privacy without authentication does not exist", "set meter.snmp_auth");
    }
    static constexpr std::string_view kAuth[] = {"", "SHA", "SHA-256", "SHA-512"};
    if (std::find(std::begin(kAuth), std::end(kAuth), made_.snmp.auth) == std::end(kAuth)) {
      add("meter.snmp_auth", "'" + made_.snmp.auth + "' is none of SHA, SHA-256, SHA-512");
    }
    if (!made_.snmp.privacy.empty() && made_.snmp.privacy != "AES") {
      add("meter.snmp_privacy", "'" + made_.snmp.privacy + "' is not AES");
    }
    if (made_.address.find('@') != std::string::npos && made_.protocol != Protocol::csv) {
      add("meter.address", "holds a '@', as a password in it would", "use meter.user and meter.password_file");
    }
  }

  void check_belonging(const std::string& prefix) {
    if (to_string(made_.protocol) != text("meter.protocol")) return;  // told already; which keys belong is not known
    const std::string_view protocol = to_string(made_.protocol);
    for (const Belongs& row : kBelongs) {
      const std::string path = prefix + std::string(row.key);
      if (config_.where(path) == "default" || row.protocols.find(protocol) != std::string_view::npos) continue;
      add(path, fmt::format("is a key of {}, and this meter speaks {}", row.protocols, protocol));
    }
    for (const auto key : split(kNeeded[static_cast<std::size_t>(made_.protocol)], ' ')) {
      const std::string path = prefix + std::string(key);
      if (config_.where(path) == "default") add(path, "is missing");
    }
  }

  void read_point(const std::string& name) {
    const std::string prefix = "point." + name + ".";
    PointProfile point;
    point.name = name;
    const auto quantity = parse_quantity(text(prefix + "quantity"));
    if (!quantity) add(prefix + "quantity", quantity.error());
    point.quantity = quantity.value_or(Quantity::power);
    point.unit = text(prefix + "unit");
    if (quantity) {
      const auto to_base = conversion(point.quantity, point.unit);
      if (!to_base) add(prefix + "unit", to_base.error());
      point.to_base = to_base.value_or(Conversion{});
    }
    point.scale = config_.number(prefix + "scale").value_or(1);
    if (point.scale == 0) add(prefix + "scale", "0 would make every value 0");
    point.scope = scope(prefix + "scope", made_.scope);
    point.group = text(prefix + "group");
    point.resolution = config_.number(prefix + "resolution");
    point.update_interval = config_.duration(prefix + "update_interval");
    check_belonging(prefix);
    read_where(prefix, point);
    made_.points.push_back(std::move(point));
  }

  void read_where(const std::string& prefix, PointProfile& point) {
    point.oid = text(prefix + "oid");
    point.path = text(prefix + "path");
    point.pointer = text(prefix + "pointer");
    point.selector = text(prefix + "selector");
    point.sensor = text(prefix + "sensor");
    point.column = text(prefix + "column");
    for (const std::string& said : config_.texts(prefix + "absent")) {
      double value = 0;
      if (!parse_decimal(said, value)) add(prefix + "absent", "'" + said + "' is no number");
      point.absent.push_back(value);
    }
    if (made_.protocol == Protocol::modbus) read_register(prefix, point.modbus);
    if (made_.protocol == Protocol::prometheus) check_metric_unit(prefix, point);
  }

  void read_register(const std::string& prefix, ModbusPoint& at) {
    at.address = static_cast<int>(config_.whole(prefix + "register").value_or(0));
    at.table = word<RegisterTable>(prefix + "table", table_words(), text(prefix + "table"));
    at.type = word<RegisterType>(prefix + "type", type_words(), text(prefix + "type"));
    at.order = word<ByteOrder>(prefix + "order", order_words(), text(prefix + "order"));
    const int first = at.address - made_.register_base;
    const bool set = config_.where(prefix + "register") != "default";
    if (set && (first < 0 || first + width_of(at.type) > 65536)) {
      add(prefix + "register", fmt::format("{} is outside the device's registers", at.address));
    }
    const std::size_t digits = static_cast<std::size_t>(4 * width_of(at.type));
    for (const std::string& said : config_.texts(prefix + "sentinel")) {
      std::uint64_t bits = 0;
      const char* end = said.data() + said.size();
      const bool hexadecimal = said.starts_with("0x") && said.size() == digits + 2 &&
                               std::from_chars(said.data() + 2, end, bits, 16).ptr == end;
      if (!hexadecimal) {
        add(prefix + "sentinel", fmt::format("'{}' is not as wide as {}", said, to_string(at.type)),
            fmt::format("write 0x and {} hexadecimal digits", digits));
      }
      at.sentinels.push_back(bits);
    }
  }

  /// Prometheus' convention puts the base unit last in a metric's name; a profile that says another is wrong.
  void check_metric_unit(const std::string& prefix, const PointProfile& point) {
    struct Suffix {
      std::string_view text;
      std::string_view unit;
    };
    static constexpr Suffix kSuffixes[] = {{"_watts", "W"},  {"_joules", "J"},   {"_joules_total", "J"},
                                           {"_volts", "V"},  {"_amperes", "A"},  {"_celsius", "degC"},
                                           {"_hertz", "Hz"}, {"_pascals", "Pa"}, {"_ratio", ""}};
    const std::string_view selector = point.selector;
    const std::string_view metric = trim(selector.substr(0, selector.find('{')));
    for (const Suffix& suffix : kSuffixes) {
      if (!metric.ends_with(suffix.text) || point.unit == suffix.unit) continue;
      add(prefix + "unit",
          fmt::format("the metric's name ends in {}, and the unit says \"{}\"", suffix.text, point.unit),
          fmt::format("write \"{}\"", suffix.unit));
    }
    if (point.quantity == Quantity::energy && metric.ends_with("_joules")) {
      add(prefix + "selector", "a counter of energy ends in _joules_total", "check which metric counts");
    }
  }

  const Config& config_;
  std::string name_;
  Profile made_;
  std::vector<Error> faults_;
  std::map<std::string, std::string> sections_;  ///< the first line of each
};

std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += c;
  }
  return made + '"';
}

/// Lines of a TOML table; what holds by default is left out.
class Lines {
 public:
  void table(const std::string& head) { text_ += fmt::format("{}[{}]\n", text_.empty() ? "" : "\n", head); }
  void text(std::string_view key, std::string_view value) {
    if (!value.empty()) text_ += fmt::format("{} = {}\n", key, quoted(value));
  }
  void whole(std::string_view key, int value, int otherwise) {
    if (value != otherwise) text_ += fmt::format("{} = {}\n", key, value);
  }
  void number(std::string_view key, double value) { text_ += fmt::format("{} = {}\n", key, format_exact(value)); }
  void duration(std::string_view key, Seconds value) {
    text_ += fmt::format("{} = \"{}s\"\n", key, format_exact(value.value()));
  }
  void list(std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    std::string made;
    for (const std::string& value : values) made += (made.empty() ? "" : ", ") + quoted(value);
    text_ += fmt::format("{} = [{}]\n", key, made);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void write_meter(const Profile& profile, Lines& lines) {
  lines.table("meter");
  lines.text("id", profile.id);
  lines.text("protocol", to_string(profile.protocol));
  lines.text("source", profile.source);
  lines.text("address", profile.address);
  lines.duration("timeout", profile.timeout);
  lines.text("scope", flyball::to_string(profile.scope));
  lines.text("user", profile.user);
  lines.text("password_file", profile.password.file);
  lines.text("password_env", profile.password.variable);
  lines.text("privacy_password_file", profile.privacy_password.file);
  lines.text("privacy_password_env", profile.privacy_password.variable);
  lines.text("ca_file", profile.ca_file);
  lines.whole("unit_id", profile.unit_id, 1);
  lines.whole("register_base", profile.register_base, 0);
  lines.whole("snmp_version", profile.snmp.version, 2);
  lines.text("snmp_auth", profile.snmp.auth);
  lines.text("snmp_privacy", profile.snmp.privacy);
  lines.text("time_column", profile.time_column);
  lines.text("zone", profile.zone);
  lines.duration("stale_after", profile.stale_after);
  lines.duration("window", profile.window);
  if (profile.commissioned.at.empty()) return;
  lines.table("commissioned");
  lines.text("at", profile.commissioned.at);
  lines.text("identity", profile.commissioned.identity);
  if (profile.commissioned.clock_offset) lines.number("clock_offset_s", profile.commissioned.clock_offset->value());
}

void write_point(const Profile& profile, const PointProfile& point, Lines& lines) {
  lines.table("point." + quoted(point.name));
  lines.text("quantity", to_string(point.quantity));
  lines.text("unit", point.unit);
  if (point.scale != 1) lines.number("scale", point.scale);
  if (point.scope != profile.scope) lines.text("scope", flyball::to_string(point.scope));
  lines.text("group", point.group);
  if (profile.protocol == Protocol::modbus) {
    lines.whole("register", point.modbus.address, -1);
    lines.text("table", to_string(point.modbus.table));
    lines.text("type", to_string(point.modbus.type));
    lines.text("order", to_string(point.modbus.order));
    std::vector<std::string> sentinels;
    sentinels.reserve(point.modbus.sentinels.size());
    for (const std::uint64_t bits : point.modbus.sentinels) {
      sentinels.push_back(fmt::format("0x{:0{}x}", bits, 4 * width_of(point.modbus.type)));
    }
    lines.list("sentinel", sentinels);
  }
  lines.text("oid", point.oid);
  std::vector<std::string> absent;
  absent.reserve(point.absent.size());
  for (const double value : point.absent) absent.push_back(format_exact(value));
  lines.list("absent", absent);
  lines.text("path", point.path);
  lines.text("pointer", point.pointer);
  lines.text("selector", point.selector);
  lines.text("sensor", point.sensor);
  lines.text("column", point.column);
  if (point.resolution) lines.number("resolution", *point.resolution);
  if (point.update_interval) lines.duration("update_interval", *point.update_interval);
}

}  // namespace

const PointProfile* Profile::point(std::string_view name) const {
  const auto found = std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.name == name; });
  return found == points.end() ? nullptr : &*found;
}

tl::expected<Profile, std::vector<Error>> parse_profile(std::string_view text, const std::string& name) {
  const Config::Partial file = Config::parse_partly(text, name, profile_keys());
  if (!file.readable) return tl::unexpected(file.faults);
  return ProfileReader(file, name).read();
}

std::string profile_text(const Profile& profile) {
  Lines lines;
  write_meter(profile, lines);
  for (const PointProfile& point : profile.points) write_point(profile, point, lines);
  return lines.take();
}

}  // namespace flyball::meter
