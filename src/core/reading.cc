#include "core/reading.h"

#include <array>
#include <utility>

namespace flyball {
namespace {

template <class Enum, std::size_t N>
Result<Enum> find_by_name(std::string_view text, const std::array<Enum, N>& all, const char* what) {
  for (const Enum candidate : all) {
    if (to_string(candidate) == text) return candidate;
  }
  return fail(ErrorCode::input, std::string("'") + std::string(text.substr(0, 40)) + "' is not a " + what);
}

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::missing:
      return "missing";
    case Status::unchanged:
      return "unchanged";
    case Status::not_supported:
      return "not_supported";
    case Status::no_permission:
      return "no_permission";
    case Status::failed:
      return "failed";
    case Status::lost:
      return "lost";
    case Status::stale:
      return "stale";
    case Status::garbage:
      return "garbage";
  }
  return "unknown";
}

std::string_view to_string(Signal signal) {
  switch (signal) {
    case Signal::power_average:
      return "power_average";
    case Signal::power_instant:
      return "power_instant";
    case Signal::energy:
      return "energy";
    case Signal::utilisation:
      return "utilisation";
    case Signal::temperature:
      return "temperature";
    case Signal::memory_temperature:
      return "memory_temperature";
    case Signal::sm_clock:
      return "sm_clock";
    case Signal::memory_clock:
      return "memory_clock";
    case Signal::limit_requested:
      return "limit_requested";
    case Signal::limit_enforced:
      return "limit_enforced";
    case Signal::throttle:
      return "throttle";
    case Signal::fan:
      return "fan";
    case Signal::tokens:
      return "tokens";
    case Signal::other:
      return "other";
  }
  return "unknown";
}

std::string_view unit_of(Signal signal) {
  switch (signal) {
    case Signal::power_average:
    case Signal::power_instant:
    case Signal::limit_requested:
    case Signal::limit_enforced:
      return "W";
    case Signal::energy:
      return "J";
    case Signal::temperature:
    case Signal::memory_temperature:
      return "°C";
    case Signal::sm_clock:
    case Signal::memory_clock:
      return "Hz";
    case Signal::utilisation:
    case Signal::throttle:
    case Signal::fan:
    case Signal::tokens:
    case Signal::other:
      break;
  }
  return "";
}

Result<Signal> parse_signal(std::string_view text) {
  static constexpr std::array all = {Signal::power_average,  Signal::power_instant, Signal::energy,
                                     Signal::utilisation,    Signal::temperature,   Signal::memory_temperature,
                                     Signal::sm_clock,       Signal::memory_clock,  Signal::limit_requested,
                                     Signal::limit_enforced, Signal::throttle,      Signal::fan,
                                     Signal::tokens,         Signal::other};
  return find_by_name(text, all, "signal");
}

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::chip:
      return "chip";
    case Scope::board:
      return "board";
    case Scope::module:
      return "module";
    case Scope::node_dc:
      return "node_dc";
    case Scope::node_ac:
      return "node_ac";
    case Scope::rack:
      return "rack";
    case Scope::pdu:
      return "pdu";
    case Scope::ups:
      return "ups";
    case Scope::feed:
      return "feed";
    case Scope::facility:
      return "facility";
    case Scope::unknown:
      break;
  }
  return "unknown";
}

Result<Scope> parse_scope(std::string_view text) {
  static constexpr std::array all = {Scope::chip,    Scope::board,    Scope::module, Scope::node_dc,
                                     Scope::node_ac, Scope::rack,     Scope::pdu,    Scope::ups,
                                     Scope::feed,    Scope::facility, Scope::unknown};
  return find_by_name(text, all, "scope");
}

std::string to_string(ThrottleReasons reasons) {
  static constexpr std::array<std::pair<std::uint32_t, std::string_view>, 9> names = {{
      {ThrottleReasons::kIdle, "idle"},
      {ThrottleReasons::kApplicationClocks, "application_clocks"},
      {ThrottleReasons::kSoftwarePowerCap, "software_power_cap"},
      {ThrottleReasons::kHardwareSlowdown, "hardware_slowdown"},
      {ThrottleReasons::kSyncBoost, "sync_boost"},
      {ThrottleReasons::kSoftwareThermal, "software_thermal"},
      {ThrottleReasons::kHardwareThermal, "hardware_thermal"},
      {ThrottleReasons::kPowerBrake, "power_brake"},
      {ThrottleReasons::kDisplayClocks, "display_clocks"},
  }};
  std::string text;
  for (const auto& [bit, name] : names) {
    if ((reasons.bits & bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace flyball
