#pragma once
// From the readings of one GPU to its observation over an interval and its energy over a run.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "core/control.h"
#include "core/driver.h"
#include "core/reading.h"
#include "loop/time_mean.h"

namespace flyball::loop {

/// Values that were set aside, by reason. None of them reaches a total or a decision.
struct Rejected {
  std::uint64_t garbage = 0;     ///< cannot be true
  std::uint64_t stale = 0;       ///< measured too long before it was handed over
  std::uint64_t disordered = 0;  ///< not after the reading before it
  std::uint64_t absent = 0;      ///< no power came, for a reason given
  std::uint64_t total() const { return garbage + stale + disordered + absent; }
  Rejected& operator+=(const Rejected& o) {
    garbage += o.garbage, stale += o.stale, disordered += o.disordered, absent += o.absent;
    return *this;
  }
};

/// Energy is the counter's where there is one: its differences hold across holes in the readings. Where it is missing,
/// fell (a reset), leapt or stood still, the trapezoid of power counts for that stretch, and the method says so.
class GpuMeter {
 public:
  struct Options {
    Seconds longest_gap{1.75};  ///< further apart than three lost polls of 0.5 s is a hole
    Seconds stale_after{2.0};   ///< older than four polls is no longer what is
  };

  GpuMeter(DeviceId device, const Options& options);

  /// The board's range, for the observation and to tell garbage by.
  void set_limits(const PowerLimits& limits);
  /// `now` is the reader's clock when the reading arrived.
  void add(const GpuReading& reading, MonoTime now);
  /// Closes the interval that ends now.
  GpuObservation take(MonoTime now, Seconds interval);

  /// Since the first reading.
  Joules energy() const { return booked_ + pending_; }
  /// Time that has an energy, by counter or trapezoid.
  Seconds covered() const { return booked_time_ + pending_time_; }
  std::string method() const;
  /// Energy by counter over the trapezoid's, over the stretches where both are whole; 1 = they agree. Missing before
  /// there are some minutes of both.
  Sample<double> counter_to_power_ratio() const;
  const Rejected& rejected() const { return rejected_; }
  const DeviceId& device() const { return device_; }
  Scope scope() const { return scope_; }

 private:
  Watts highest_power() const;
  Sample<Watts> pick_power(const GpuReading& reading);
  void add_power(MonoTime at, Watts power);
  void add_counter(MonoTime at, Joules energy);
  void book_pending(MonoTime at);
  void begin_pending(MonoTime at);
  Sample<Joules> interval_energy(Seconds interval) const;

  DeviceId device_;
  Options options_;
  Scope scope_ = Scope::unknown;
  std::optional<Signal> power_signal_;  // one source for the whole run
  PowerLimits limits_;
  std::optional<MonoTime> last_taken_;

  TimeMean power_, utilisation_, temperature_, clock_;  // of the interval
  Sample<Milliwatts> enforced_;
  ThrottleReasons throttle_;

  struct Count {
    MonoTime at;
    Joules energy;
  };
  std::optional<Count> base_;            // the last counter value that was booked
  std::optional<Count> interval_start_;  // the counter at the start of the interval, if it was read there
  std::optional<Count> interval_end_;    // the last one read in it
  bool counter_broke_ = false;           // within the interval
  TimeMean run_power_;                   // since `base_`
  Joules booked_, pending_;
  Seconds booked_time_, pending_time_;
  Joules by_counter_, by_power_;  // where both are whole
  std::uint64_t counted_ = 0, integrated_ = 0;

  Rejected rejected_;
};

}  // namespace flyball::loop
