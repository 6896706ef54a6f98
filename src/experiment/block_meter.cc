#include "experiment/block_meter.h"

#include <algorithm>

namespace flyball::experiment {
namespace {

/// Polls that a step may be reported late by: half a minute at 0.5 s.
constexpr std::size_t kHistory = 64;

}  // namespace

/// Energy and coverage at the end of the last step; nothing if that lies before the polls that are remembered.
std::optional<BlockMeter::Mark> BlockMeter::mark(const Poll& poll) const {
  const Seconds at = poll.step_ended;
  for (std::size_t i = history_.size(); i-- > 1;) {
    const Poll& before = history_[i - 1];
    const Poll& after = history_[i];
    if (at < before.at || at > after.at || after.at <= before.at) continue;
    const double share = (at - before.at) / (after.at - before.at);
    return Mark{at, before.energy + (after.energy - before.energy) * share,
                before.covered + (after.covered - before.covered) * share, poll.tokens};
  }
  return std::nullopt;
}

void BlockMeter::close_segment() {
  if (from_ && to_ && now_) {
    now_->energy += to_->energy - from_->energy;
    now_->tokens += static_cast<double>(to_->tokens - from_->tokens);
    now_->time += to_->at - from_->at;
    covered_ += to_->covered - from_->covered;
  }
  from_.reset();
  to_.reset();
}

Block BlockMeter::block_in_hand() const {
  Block block = *now_;
  Seconds covered = covered_;
  if (from_ && to_) {
    block.energy += to_->energy - from_->energy;
    block.tokens += static_cast<double>(to_->tokens - from_->tokens);
    block.time += to_->at - from_->at;
    covered += to_->covered - from_->covered;
  }
  block.coverage_fraction = block.time > Seconds(0) ? covered / block.time : 0;
  return block;
}

void BlockMeter::open(std::uint64_t index, Seconds at) {
  if (now_) {
    close_segment();
    ended_.push_back(block_in_hand());
    if (ended_.size() > kMostBlocks) ended_.pop_front();
  }
  now_ = Block{};
  now_->index = index;
  now_->arm = schedule_.arm(index);
  covered_ = Seconds(0);
  not_before_ = at + schedule_.settle();
}

void BlockMeter::add(const Poll& poll) {
  history_.push_back(poll);
  if (history_.size() > kHistory) history_.pop_front();
  const bool new_step = poll.step_ended > last_step_;
  const bool restarted = poll.tokens < last_tokens_;
  last_step_ = poll.step_ended;
  last_tokens_ = poll.tokens;
  if (!poll.counts || restarted) {
    close_segment();
    not_before_ = std::max(not_before_, poll.at + schedule_.settle());
    return;
  }
  if (!now_ || !new_step || poll.step_ended < not_before_) return;
  if (const auto made = mark(poll)) (from_ ? to_ : from_) = made;
}

std::vector<Block> BlockMeter::blocks() const {
  std::vector<Block> all(ended_.begin(), ended_.end());
  if (now_) all.push_back(block_in_hand());
  return all;
}

}  // namespace flyball::experiment
