#include "loop/progress.h"

#include <algorithm>

namespace flyball::loop {

void StepRate::add(const WorkloadProgress& progress) {
  if (last_ && (progress.tokens < last_->tokens || progress.steps < last_->steps || progress.at < last_->at)) {
    // Tokens made so far stay counted: the new job's zero is moved below them.
    WorkloadProgress zero = progress;
    zero.tokens -= std::min(zero.tokens, tokens());
    first_ = zero;
    anchor_ = progress;
  }
  if (!first_) first_ = anchor_ = progress;
  const bool training = progress.phase == Phase::training || progress.phase == Phase::unknown;
  if (!training) {
    interrupted_ = true;
  } else if (interrupted_ && last_ && progress.steps > last_->steps) {
    anchor_ = progress;
    interrupted_ = false;
  }
  last_ = progress;
}

StepRate::Rate StepRate::take() {
  Rate rate;
  if (interrupted_ || !last_ || last_->tokens <= anchor_->tokens || last_->at <= anchor_->at) return rate;
  const Seconds time = last_->at - anchor_->at;
  rate.tokens_per_second = static_cast<double>(last_->tokens - anchor_->tokens) / time.value();
  if (last_->steps > anchor_->steps) rate.step_time = time / static_cast<double>(last_->steps - anchor_->steps);
  rate.from = anchor_->at;
  rate.to = last_->at;
  anchor_ = last_;
  return rate;
}

}  // namespace flyball::loop
