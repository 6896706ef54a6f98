#pragma once
// What a job says of itself.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace flyball {

enum class Phase : std::uint8_t {
  unknown,
  idle,
  data_loading,
  forward,
  backward,
  gradient_sync,
  optimizer,
  training,  ///< a step as a whole, where its parts are not told
  checkpoint,
  evaluation,
  rollout,  ///< generation: decode
  prefill,
  startup,
};
std::string_view to_string(Phase phase);
Result<Phase> parse_phase(std::string_view text);

/// A phase over an interval of time, told by the job or inferred from power.
struct PhaseSpan {
  Phase label = Phase::unknown;
  WallTime start;
  WallTime stop;
  bool inferred = false;
  double confidence_fraction = 1;  ///< of an inferred span
};

/// A point of progress. Counts are cumulative since the start of the job.
struct WorkloadProgress {
  MonoTime at;
  Phase phase = Phase::unknown;
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;  ///< effective training tokens, over all ranks
};

}  // namespace flyball
