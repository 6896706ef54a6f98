#pragma once
// The mean of a sampled signal, weighted by time.

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "core/reading.h"

namespace flyball::loop {

/// Trapezoids between good samples. Two samples further apart than `longest_gap` have a hole between them, which adds
/// nothing and is not covered. The last sample stays when an interval begins, so that intervals join without seams; a
/// trapezoid across the beginning counts from there on.
class TimeMean {
 public:
  explicit TimeMean(Seconds longest_gap) : longest_gap_(longest_gap) {}

  /// Samples must come in order of time; one at or before the last is left out and `false` returned.
  bool add(MonoTime at, double value) {
    if (last_ && at <= last_->at) return false;
    if (last_ && at - last_->at <= longest_gap_) {
      const MonoTime from = std::max(last_->at, start_);
      const double weight = (from - last_->at) / (at - last_->at);
      const double value_there = last_->value + weight * (value - last_->value);
      area_ += (value_there + value) / 2 * (at - from).value();
      covered_ += at - from;
    }
    last_ = Last{at, value};
    return true;
  }

  Seconds covered() const { return covered_; }
  /// value · s, over the covered time.
  double area() const { return area_; }
  Sample<double> mean() const {
    return covered_ > Seconds(0) ? Sample<double>(area_ / covered_.value()) : Sample<double>::absent(Status::missing);
  }
  void begin_interval(MonoTime start) {
    start_ = start;
    area_ = 0;
    covered_ = Seconds(0);
  }

 private:
  struct Last {
    MonoTime at;
    double value;
  };
  Seconds longest_gap_;
  MonoTime start_;
  double area_ = 0;
  Seconds covered_;
  std::optional<Last> last_;
};

}  // namespace flyball::loop
