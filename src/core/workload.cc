#include "core/workload.h"

#include <array>

namespace flyball {

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::unknown:
      return "unknown";
    case Phase::idle:
      return "idle";
    case Phase::data_loading:
      return "data_loading";
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::gradient_sync:
      return "gradient_sync";
    case Phase::optimizer:
      return "optimizer";
    case Phase::training:
      return "training";
    case Phase::checkpoint:
      return "checkpoint";
    case Phase::evaluation:
      return "evaluation";
    case Phase::rollout:
      return "rollout";
    case Phase::prefill:
      return "prefill";
    case Phase::startup:
      return "startup";
  }
  return "unknown";
}

Result<Phase> parse_phase(std::string_view text) {
  static constexpr std::array all = {Phase::unknown,    Phase::idle,          Phase::data_loading, Phase::forward,
                                     Phase::backward,   Phase::gradient_sync, Phase::optimizer,    Phase::training,
                                     Phase::checkpoint, Phase::evaluation,    Phase::rollout,      Phase::prefill,
                                     Phase::startup};
  for (const Phase phase : all) {
    if (to_string(phase) == text) return phase;
  }
  return fail(ErrorCode::input, "'" + std::string(text.substr(0, 40)) + "' is not a phase");
}

}  // namespace flyball
