#include "twin/sensor.h"

#include <algorithm>
#include <cmath>

namespace flyball::twin {

Sensor::Sensor(const GpuParameters& parameters, Random random)
    : period_(parameters.sensor_period.value()),
      look_start_(period_ * (1 - parameters.sensor_look_fraction)),
      instant_per_joule_((1 + parameters.sensor_gain_sd * random.normal()) / (period_ - look_start_)),
      counter_gain_(1 + parameters.counter_gain_sd * random.normal()),
      resolution_(parameters.counter_resolution.value()),
      looks_(std::clamp<std::size_t>(
          static_cast<std::size_t>(std::llround(parameters.sensor_average / parameters.sensor_period)), 1, kMaxLooks)) {
  // The board idled before the twin began.
  instant_ = instant_per_joule_ * parameters.idle_power.value() * (period_ - look_start_);
  std::fill_n(ring_.begin(), looks_, instant_);
  sum_ = instant_ * static_cast<double>(looks_);
}

void Sensor::feed(Watts power, Seconds time) {
  double left = time.value();
  while (left > 0) {
    const double event = looking_ ? period_ : look_start_;
    const double until = event - time_;
    if (left < until) {
      time_ += left;
      energy_ += power.value() * left;
      return;
    }
    energy_ += power.value() * until;
    left -= until;
    time_ = event;
    if (looking_) {
      refresh();
    } else {
      looking_ = true;
      look_start_energy_ = energy_;
    }
  }
}

void Sensor::refresh() {
  instant_ = instant_per_joule_ * (energy_ - look_start_energy_);
  sum_ += instant_ - ring_[next_];
  ring_[next_] = instant_;
  next_ = next_ + 1 == looks_ ? 0 : next_ + 1;
  if (next_ == 0) {  // so that rounding errors of the running sum do not add up
    sum_ = 0;
    for (std::size_t i = 0; i < looks_; ++i) sum_ += ring_[i];
  }
  refreshed_energy_ = energy_;
  ++refreshes_;
  time_ = 0;
  looking_ = false;
}

Joules Sensor::counter() const {
  const double counted = counter_gain_ * std::max(0.0, refreshed_energy_ - counter_base_);
  return Joules(std::floor(counted / resolution_) * resolution_);
}

void Sensor::reset_counter() { counter_base_ = energy_; }

}  // namespace flyball::twin
