#include "core/facility.h"

#include <array>
#include <utility>

namespace flyball {

namespace {

constexpr std::array kCauses = {
    std::pair{Cause::cooling_strategy, std::string_view("cooling_strategy")},
    std::pair{Cause::set_point, std::string_view("set_point")},
    std::pair{Cause::fouling, std::string_view("fouling")},
    std::pair{Cause::fan_or_pump, std::string_view("fan_or_pump")},
    std::pair{Cause::ups_mode, std::string_view("ups_mode")},
    std::pair{Cause::rack_heat, std::string_view("rack_heat")},
    std::pair{Cause::voltage_sag, std::string_view("voltage_sag")},
    std::pair{Cause::gpu_ageing, std::string_view("gpu_ageing")},
    std::pair{Cause::firmware, std::string_view("firmware")},
    std::pair{Cause::scheduling_mix, std::string_view("scheduling_mix")},
    std::pair{Cause::model_behaviour, std::string_view("model_behaviour")},
    std::pair{Cause::meter_fault, std::string_view("meter_fault")},
    std::pair{Cause::not_identifiable, std::string_view("not_identifiable")},
};

}  // namespace

std::string_view to_string(Cause cause) {
  for (const auto& [value, name] : kCauses)
    if (value == cause) return name;
  return "unknown";
}

Result<Cause> parse_cause(std::string_view text) {
  for (const auto& [value, name] : kCauses)
    if (name == text) return value;
  return fail(ErrorCode::input, "'" + std::string(text.substr(0, 40)) + "' is not a cause");
}

std::string_view to_string(CauseLayer layer) {
  switch (layer) {
    case CauseLayer::task:
      return "task";
    case CauseLayer::scheduling:
      return "scheduling";
    case CauseLayer::hardware:
      return "hardware";
    case CauseLayer::none:
      return "none";
  }
  return "unknown";
}

CauseLayer layer_of(Cause cause) {
  if (cause == Cause::model_behaviour) return CauseLayer::task;
  if (cause == Cause::scheduling_mix) return CauseLayer::scheduling;
  if (cause == Cause::not_identifiable) return CauseLayer::none;
  return CauseLayer::hardware;
}

}  // namespace flyball
