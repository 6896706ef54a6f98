#include "meter/redfish/discover.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "meter/budget.h"
#include "meter/http.h"
#include "meter/redfish/resource.h"

namespace flyball::meter {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLargestBody = 1 << 20;
constexpr std::size_t kMostPoints = 1000, kMostNotes = 20, kLongestLink = 256, kLongestName = 96;
constexpr int kDeepestValue = 12;

/// Links that lead to what is measured (DMTF DSP2046); all others are left.
constexpr std::string_view kFollowed[] = {
    "Chassis",        "PowerEquipment", "RackPDUs",         "Members",       "Power",
    "Thermal",        "PowerSubsystem", "ThermalSubsystem", "PowerSupplies", "EnvironmentMetrics",
    "ThermalMetrics", "Metrics",        "Sensors",          "Mains",         "Outlets"};

struct Known {
  std::string_view key;
  Quantity quantity;
  std::string_view unit;
};
/// Of Power and Thermal numbers, of the others objects with a Reading.
constexpr Known kValues[] = {{"PowerConsumedWatts", Quantity::power, "W"},
                             {"PowerInputWatts", Quantity::power, "W"},
                             {"PowerOutputWatts", Quantity::power, "W"},
                             {"PowerWatts", Quantity::power, "W"},
                             {"InputPowerWatts", Quantity::power, "W"},
                             {"OutputPowerWatts", Quantity::power, "W"},
                             {"EnergykWh", Quantity::energy, "kWh"},
                             {"ReadingCelsius", Quantity::temperature, "degC"},
                             {"TemperatureCelsius", Quantity::temperature, "degC"},
                             {"LineInputVoltage", Quantity::voltage, "V"},
                             {"InputVoltage", Quantity::voltage, "V"},
                             {"Voltage", Quantity::voltage, "V"},
                             {"InputCurrentAmps", Quantity::current, "A"},
                             {"CurrentAmps", Quantity::current, "A"}};
/// Of sensors, which say their unit.
constexpr Quantity kSensed[] = {Quantity::power,   Quantity::energy,  Quantity::temperature,
                                Quantity::voltage, Quantity::current, Quantity::apparent_power};

bool is_local(const std::string& link) {
  return link.starts_with("/redfish/v1/") && link.size() <= kLongestLink && link.find("..") == link.npos &&
         link.find("//") == link.npos &&
         std::all_of(link.begin(), link.end(), [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; });
}

/// "/redfish/v1/Chassis/1/Power" and "/PowerControl/0/…": letters, digits and '-' kept.
std::string name_of(const std::string& path) {
  std::string made;
  for (const char c : path.substr(std::string_view("/redfish/v1/").size())) {
    const bool kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-';
    if (kept || (!made.empty() && made.back() != '_')) made += kept ? c : '_';
  }
  return made;
}

std::string escaped(const std::string& key) {
  std::string made;
  for (const char c : key) made += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return made;
}

class Walk {
 public:
  Walk(const Fetch& fetch, const Clock& clock, Seconds timeout, const DiscoverLimits& limits)
      : fetch_(fetch), budget_(clock, limits.time), timeout_(timeout), limits_(limits) {}

  Result<Discovery> run() {
    FLYBALL_TRY(read("/redfish/v1/", 0));
    while (!waiting_.empty()) {
      if (made_.resources >= limits_.resources) note(fmt::format("more than {} resources", limits_.resources));
      if (budget_.over()) note("no time left after " + flyball::format(limits_.time));
      if (made_.resources >= limits_.resources || budget_.over()) {
        note(fmt::format("{} resources were not read, {} first", waiting_.size(), waiting_.front().first));
        break;
      }
      const auto [path, depth] = waiting_.front();
      waiting_.pop_front();
      if (sources_.contains(path)) continue;  // its value was in a resource before
      if (const auto done = read(path, depth); !done) note(path + ": " + done.error().what);
    }
    return std::move(made_);
  }

 private:
  void note(std::string text) {
    if (made_.notes.size() < kMostNotes) made_.notes.push_back(std::move(text));
  }

  Result<> read(const std::string& path, int depth) {
    ++made_.resources;
    FLYBALL_ASSIGN(const std::string body, fetch_(path, std::min(timeout_, budget_.left())));
    if (body.size() > kLargestBody) return fail(ErrorCode::failed, fmt::format("{} bytes are too many", body.size()));
    const Json document = Json::parse(body, nullptr, false);
    if (!document.is_object()) return fail(ErrorCode::failed, "the answer is no JSON object");
    const std::string units = redfish_value(body, "/Reading").unit;
    for (const Quantity quantity : kSensed) {
      if (!units.empty() && conversion(quantity, units)) add(path, "/Reading", {"", quantity, units}, body);
    }
    look(document, path, "", body, 0);
    for (const std::string_view key : kFollowed) follow(document, std::string(key), depth);
    follow(document, "Members@odata.nextLink", depth);
    return {};
  }

  void look(const Json& in, const std::string& path, const std::string& pointer, const std::string& body, int depth) {
    if (depth > kDeepestValue || !in.is_structured()) return;
    for (const auto& item : in.items()) {
      const std::string here = pointer + '/' + escaped(item.key());
      const Json& value = item.value();
      const auto known = std::find_if(std::begin(kValues), std::end(kValues),
                                      [&](const Known& one) { return in.is_object() && one.key == item.key(); });
      if (known == std::end(kValues)) {
        look(value, path, here, body, depth + 1);
      } else if (value.is_number()) {
        add(path, here, *known, body);
      } else if (value.is_object() && value.contains("Reading")) {
        if (const auto from = value.find("DataSourceUri"); from != value.end() && from->is_string())
          sources_.insert(from->get<std::string>());
        add(path, here + "/Reading", *known, body);
      }
    }
  }

  void add(const std::string& path, const std::string& pointer, const Known& what, const std::string& body) {
    if (made_.points.size() == kMostPoints) return note(fmt::format("more than {} points", kMostPoints));
    if (!redfish_value(body, pointer).said.ok()) return;  // null, or of what is not there
    PointProfile point;
    point.group = name_of(path);
    const std::string_view tail = pointer;
    point.name = name_of(path + std::string(tail.ends_with("/Reading") ? tail.substr(0, tail.size() - 8) : tail));
    if (point.name.size() > kLongestName || !names_.insert(point.name).second) {
      point.name = fmt::format("{}_{}", point.name.substr(0, kLongestName - 6), made_.points.size());
      names_.insert(point.name);
    }
    point.quantity = what.quantity;
    point.unit = what.unit;
    point.path = path;
    point.pointer = pointer;
    made_.points.push_back(std::move(point));
  }

  void follow(const Json& document, const std::string& key, int depth) {
    const auto found = document.find(key);
    if (found == document.end()) return;
    const auto one = [&](const Json& to) {
      const Json* link = to.is_object() && to.contains("@odata.id") ? &to["@odata.id"] : &to;
      if (!link->is_string()) return;
      const std::string path = link->get<std::string>();
      if (path.find('#') != path.npos) return;  // a part of a resource, which was looked at with it
      if (!is_local(path)) return note(fmt::format("a link to '{}' is not of this service", path.substr(0, 80)));
      if (!seen_.insert(path).second) return;
      if (depth == limits_.depth) return note(fmt::format("{} is deeper than {} links", path, limits_.depth));
      if (waiting_.size() < limits_.resources) waiting_.emplace_back(path, depth + 1);
    };
    if (!found->is_array()) return one(*found);
    for (const Json& each : *found) one(each);
  }

  const Fetch& fetch_;
  Budget budget_;
  Seconds timeout_;
  DiscoverLimits limits_;
  Discovery made_;
  std::deque<std::pair<std::string, int>> waiting_;
  std::set<std::string> seen_, sources_, names_;
};

}  // namespace

Result<Discovery> discover(const Fetch& fetch, const Clock& clock, Seconds timeout, const DiscoverLimits& limits) {
  return Walk(fetch, clock, timeout, limits).run();
}

Result<Discovery> discover_redfish(const Profile& profile, Clock& clock, const DiscoverLimits& limits) {
  if (profile.protocol != Protocol::redfish)
    return fail(ErrorCode::input, fmt::format("{} has no links to walk over", to_string(profile.protocol)), profile.id,
                "only Redfish tells what it has; write the points of others by their manual");
  FLYBALL_ASSIGN(const auto http, HttpClient::make(profile));
  return discover([&](const std::string& path, Seconds timeout) { return http->get(path, timeout); }, clock,
                  profile.timeout, limits);
}

}  // namespace flyball::meter
