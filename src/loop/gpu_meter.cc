#include "loop/gpu_meter.h"

#include <cmath>
#include <utility>

namespace flyball::loop {
namespace {

/// Where the board's maximum is not known: above any module on the market (superchips reach 2.7 kW).
constexpr Watts kNoBoardDrawsMore{5'000};
/// A mean over the sensor's window above twice the board's maximum is not a transient any more.
constexpr double kPowerOverMaximum = 2;
/// Counters refresh within a second on every board known; one that did not move for this long stands still.
constexpr Seconds kCounterStuck{10};
/// Over this long a counter that moved by less than half of what the power says has stood still meanwhile.
constexpr Seconds kCounterJudged{5};
constexpr double kStoodStill = 0.5;
/// Below this a board's power is too little to tell a slow counter from a stuck one.
constexpr Joules kEnoughToCompare{50};
/// Energy of an interval by power alone needs all of it: a hole is not filled.
constexpr double kWholeInterval = 1 - 1e-6;

template <class T>
Sample<double> within(const Sample<T>& sample, double low, double high) {
  if (!sample) return Sample<double>::absent(sample.status);
  double value = 0;
  if constexpr (std::is_same_v<T, double>) {
    value = *sample;
  } else {
    value = (*sample).value();
  }
  return value >= low && value <= high ? Sample<double>(value) : Sample<double>::absent(Status::garbage);
}

}  // namespace

GpuMeter::GpuMeter(DeviceId device, const Options& options)
    : device_(std::move(device)),
      options_(options),
      power_(options.longest_gap),
      utilisation_(options.longest_gap),
      temperature_(options.longest_gap),
      clock_(options.longest_gap),
      run_power_(options.longest_gap) {}

void GpuMeter::set_limits(const PowerLimits& limits) { limits_ = limits; }

Watts GpuMeter::highest_power() const {
  return limits_.maximum && *limits_.maximum > Milliwatts(0) ? limits_.maximum.value.watts() * kPowerOverMaximum
                                                             : kNoBoardDrawsMore;
}

/// The average and the instant value are different quantities: whichever comes first is kept to.
Sample<Watts> GpuMeter::pick_power(const GpuReading& reading) {
  if (!power_signal_ && reading.power_average) power_signal_ = Signal::power_average;
  if (!power_signal_ && reading.power_instant) power_signal_ = Signal::power_instant;
  if (power_signal_ == Signal::power_average) return reading.power_average;
  if (power_signal_ == Signal::power_instant) return reading.power_instant;
  return Sample<Watts>::absent(reading.power_average.status);
}

void GpuMeter::add(const GpuReading& reading, MonoTime now) {
  if (last_taken_ && reading.taken <= *last_taken_) {
    ++rejected_.disordered;
    return;
  }
  if (reading.taken > now) {
    ++rejected_.garbage;
    return;
  }
  if (now - reading.taken > options_.stale_after) {
    ++rejected_.stale;
    return;
  }
  last_taken_ = reading.taken;
  scope_ = reading.scope;

  const Sample<Watts> power = pick_power(reading);
  if (!power) {
    if (power.status != Status::unchanged) ++rejected_.absent;
  } else if (const auto good = within(power, 0, highest_power().value()); good) {
    add_power(reading.taken, Watts(*good));
  } else {
    ++rejected_.garbage;
  }
  if (reading.energy) {
    if (const auto good = within(reading.energy, 0, 1e15); good) {
      add_counter(reading.taken, Joules(*good));
    } else {
      ++rejected_.garbage;
    }
  }
  const auto add_to = [&](TimeMean& mean, const Sample<double>& value) {
    if (value) mean.add(reading.taken, *value);
    if (value.status == Status::garbage) ++rejected_.garbage;
  };
  add_to(utilisation_, within(reading.utilisation_fraction, 0, 1));
  add_to(temperature_, within(reading.temperature, -40, 150));
  add_to(clock_, within(reading.sm_clock, 0, 10e9));
  if (reading.limit_enforced) {
    // Sentinels (0, all bits set) and limits far above the board's own are no limits.
    const auto good = within(Sample<Watts>((*reading.limit_enforced).watts()), 1, highest_power().value());
    enforced_ = good ? reading.limit_enforced : Sample<Milliwatts>::absent(Status::garbage);
    if (!good) ++rejected_.garbage;
  }
  if (reading.throttle) throttle_.bits |= (*reading.throttle).bits;
}

void GpuMeter::add_power(MonoTime at, Watts power) {
  power_.add(at, power.value());
  run_power_.add(at, power.value());
  pending_ = Joules(run_power_.area());
  pending_time_ = run_power_.covered();
}

void GpuMeter::begin_pending(MonoTime at) {
  run_power_.begin_interval(at);
  pending_ = Joules(0);
  pending_time_ = Seconds(0);
}

void GpuMeter::book_pending(MonoTime at) {
  if (pending_time_ > Seconds(0)) ++integrated_;
  booked_ += pending_;
  booked_time_ += pending_time_;
  begin_pending(at);
}

void GpuMeter::add_counter(MonoTime at, Joules energy) {
  const Count count{at, energy};
  if (!base_) {
    book_pending(at);
  } else {
    const Joules step = energy - base_->energy;
    const Seconds time = at - base_->at;
    const bool fell = step < Joules(0);
    const bool leapt = step > highest_power() * time;
    if (step == Joules(0) && time < kCounterStuck) return;  // not refreshed yet: no new information
    const bool behind = time >= kCounterJudged && pending_ > kEnoughToCompare && step < pending_ * kStoodStill;
    if (fell || leapt || behind) {
      if (fell || leapt) ++rejected_.garbage;
      counter_broke_ = true;
      book_pending(at);
    } else {
      if (time - pending_time_ < Seconds(1e-6)) {
        by_counter_ += step;
        by_power_ += pending_;
      }
      begin_pending(at);
      booked_ += step;
      booked_time_ += time;
      ++counted_;
    }
  }
  base_ = count;
  interval_end_ = count;
}

/// By the counter if it was read where the interval begins and ends, else by power if that covers it.
Sample<Joules> GpuMeter::interval_energy(Seconds interval) const {
  if (interval_start_ && interval_end_ && !counter_broke_) {
    const Seconds between = interval_end_->at - interval_start_->at;
    const Joules step = interval_end_->energy - interval_start_->energy;
    if (std::fabs((between - interval).value()) < 1e-6 && step > Joules(0)) return step;
  }
  if (power_.covered() >= interval * kWholeInterval) return Joules(power_.area());
  return Sample<Joules>::absent(Status::missing);
}

GpuObservation GpuMeter::take(MonoTime now, Seconds interval) {
  GpuObservation out;
  out.device = device_;
  const auto convert = [](const Sample<double>& mean, auto unit) {
    using Unit = decltype(unit);
    return mean ? Sample<Unit>(Unit(*mean)) : Sample<Unit>::absent(mean.status);
  };
  out.power = convert(power_.mean(), Watts());
  out.energy = interval_energy(interval);
  out.utilisation_fraction = utilisation_.mean();
  out.temperature = convert(temperature_.mean(), Celsius());
  out.sm_clock = convert(clock_.mean(), Hertz());
  out.limit_enforced = enforced_;
  out.minimum = limits_.minimum;
  out.maximum = limits_.maximum;
  out.throttle = throttle_;
  out.coverage_fraction = interval > Seconds(0) ? std::fmin(1, power_.covered() / interval) : 0;

  for (TimeMean* mean : {&power_, &utilisation_, &temperature_, &clock_}) mean->begin_interval(now);
  enforced_ = Sample<Milliwatts>::absent(Status::missing);
  throttle_ = {};
  counter_broke_ = false;
  // Only a value read at the very boundary begins the next interval.
  interval_start_ = base_ && last_taken_ == base_->at ? base_ : std::nullopt;
  interval_end_.reset();
  return out;
}

std::string GpuMeter::method() const {
  const std::string power =
      power_signal_ == Signal::power_instant ? "trapezoid of power_instant" : "trapezoid of power_average";
  if (counted_ == 0) return power_signal_ ? power : "nothing measured";
  if (integrated_ == 0 && pending_time_ <= options_.longest_gap) return "counter";
  return "counter, " + power + " where the counter failed";
}

Sample<double> GpuMeter::counter_to_power_ratio() const {
  if (by_power_ < kEnoughToCompare * 100) return Sample<double>::absent(Status::missing);
  return by_counter_ / by_power_;
}

}  // namespace flyball::loop
