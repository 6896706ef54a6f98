#include "meter/redfish/resource.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace flyball::meter {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kDeepest = 16;

/// RFC 6901: ~1 is a slash and ~0 a tilde.
std::string unescaped(std::string_view token) {
  std::string made;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
      made += token[++i] == '1' ? '/' : '~';
    } else {
      made += token[i];
    }
  }
  return made;
}

const Json* child_of(const Json& in, const std::string& token) {
  if (in.is_object()) {
    const auto found = in.find(token);
    return found == in.end() ? nullptr : &*found;
  }
  const auto place = parse_int(token);
  if (!in.is_array() || !place || *place < 0 || static_cast<std::size_t>(*place) >= in.size()) return nullptr;
  return &in[static_cast<std::size_t>(*place)];
}

/// The value and all that it stands in, outermost first; the last is null where the pointer leads nowhere.
std::vector<const Json*> walk(const Json& document, const std::string& pointer) {
  std::vector<const Json*> way = {&document};
  if (pointer.empty()) return way;
  for (const auto token : split(std::string_view(pointer).substr(1), '/')) {
    if (way.size() > kDeepest) return {nullptr};
    way.push_back(child_of(*way.back(), unescaped(token)));
    if (way.back() == nullptr) break;
  }
  return way;
}

std::string text_in(const Json& in, const char* key) {
  if (!in.is_object()) return {};
  const auto found = in.find(key);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// Of the DSP2046 states those in which a device measures.
bool measures(std::string_view state) {
  static constexpr std::array<std::string_view, 7> kStates = {"Enabled",  "Degraded", "InTest",      "Qualified",
                                                              "Quiesced", "Updating", "StandbySpare"};
  return std::find(kStates.begin(), kStates.end(), state) != kStates.end();
}

std::string our_unit(const std::string& said) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kUnits = {{
      {"Cel", "degC"},
      {"RPM", "rpm"},
      {"kW.h", "kWh"},
      {"W.h", "Wh"},
      {"V.A", "VA"},
      {"L/min", "l/min"},
      {"Percent", "%"},
      {"m3/h", "m3/h"},
  }};
  for (const auto& [theirs, ours] : kUnits) {
    if (said == theirs) return std::string(ours);
  }
  return said;
}

RedfishValue& absent(RedfishValue& value, Status status, std::string reason) {
  value.said = Sample<double>::absent(status);
  value.reason = std::move(reason);
  return value;
}

}  // namespace

RedfishValue redfish_value(std::string_view body, const std::string& pointer) {
  RedfishValue made;
  if (!pointer.starts_with('/')) return absent(made, Status::failed, "a pointer starts with '/'");
  const Json document = Json::parse(body, nullptr, false);
  if (!document.is_object()) return absent(made, Status::failed, "the service's answer is no JSON object");
  const auto way = walk(document, pointer);
  if (way.back() == nullptr) return absent(made, Status::not_supported, "the resource has no " + pointer);
  for (const Json* in : way) {
    const std::string state = in->is_object() && in->contains("Status") ? text_in((*in)["Status"], "State") : "";
    if (!state.empty() && !measures(state)) {
      return absent(made, Status::missing, "the device is " + state.substr(0, 40) + ": absent, not 0");
    }
    if (const std::string units = text_in(*in, "ReadingUnits"); !units.empty()) made.unit = our_unit(units);
    if (const auto at = parse_rfc3339(text_in(*in, "ReadingTime"))) made.at = *at;
  }
  if (way.back()->is_null()) return absent(made, Status::missing, "the service says null");
  if (!way.back()->is_number()) return absent(made, Status::garbage, pointer + " is no number");
  made.said = way.back()->get<double>();
  return made;
}

std::string redfish_text(std::string_view body, const std::string& pointer) {
  const Json document = Json::parse(body, nullptr, false);
  if (!document.is_object() || !pointer.starts_with('/')) return {};
  const auto way = walk(document, pointer);
  return way.back() != nullptr && way.back()->is_string() ? way.back()->get<std::string>() : std::string();
}

}  // namespace flyball::meter
