#include "facility/felt.h"

#include <algorithm>
#include <cmath>

namespace flyball::facility {

FeltLoad::FeltLoad(Seconds dead_time, const std::vector<Lag>& lags) : dead_time_(dead_time) {
  for (const Lag& lag : lags) states_.push_back({lag, 0, 0});
}

void FeltLoad::move(WallTime to) {
  const double h = std::max((to - at_).value(), 0.0);
  // What is left of a difference; without a lag nothing is.
  const auto left = [&](Seconds lag) { return lag > Seconds(0) ? std::exp(-h / lag.value()) : 0.0; };
  for (State& state : states_) {
    const double a = state.lag.first.value(), b = state.lag.second.value();
    const double x = state.first - input_, y = state.second - input_;
    const double fade_a = left(state.lag.first), fade_b = left(state.lag.second);
    state.first = input_ + x * fade_a;
    if (!(b > 0)) {
      state.second = state.first;
    } else if (std::abs(a - b) < 1e-6 * a) {
      state.second = input_ + (y + x * h / a) * fade_a;
    } else {
      const double part = x * a / (a - b);
      state.second = input_ + part * fade_a + (y - part) * fade_b;
    }
  }
  at_ = std::max(at_, to);
}

void FeltLoad::take(WallTime at, double load) {
  if (!started_) {
    started_ = true;
    at_ = at;
    input_ = load;
    for (State& state : states_) state.first = state.second = load;
    return;
  }
  waiting_.emplace_back(at + dead_time_, load);
  std::size_t arrived = 0;
  for (; arrived < waiting_.size() && waiting_[arrived].first <= at; ++arrived) {
    move(waiting_[arrived].first);
    input_ = waiting_[arrived].second;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(arrived));
  // Without a dead time, what has just come is felt at once where there are no lags either.
  move(at);
  for (State& state : states_) {
    if (!(state.lag.first > Seconds(0))) state.first = input_;
    if (!(state.lag.second > Seconds(0))) state.second = state.first;
  }
}

}  // namespace flyball::facility
