#pragma once
// What the board's own power sensor shows: it refreshes periodically, looks only part of the time, averages, and is
// off by a constant gain. Nothing outside the twin sees power but through it.

#include <array>
#include <cstdint>

#include "base/random.h"
#include "base/units.h"
#include "twin/parameters.h"

namespace flyball::twin {

class Sensor {
 public:
  Sensor(const GpuParameters& parameters, Random random);

  /// True power over the next `time`.
  void feed(Watts power, Seconds time);

  Watts average() const { return Watts(sum_ / static_cast<double>(looks_)); }
  Watts instant() const { return Watts(instant_); }
  Joules counter() const;
  /// Grows with each refresh: two reads with the same number are one measurement.
  std::uint64_t refreshes() const { return refreshes_; }
  /// As a driver reload does.
  void reset_counter();

 private:
  void refresh();

  static constexpr std::size_t kMaxLooks = 128;
  double period_, look_start_, instant_per_joule_, counter_gain_, resolution_;
  std::size_t looks_;  // refreshes per average
  double time_ = 0;    // s since the last refresh
  double energy_ = 0;  // J, true, since the start
  double look_start_energy_ = 0;
  bool looking_ = false;
  double counter_base_ = 0;
  double instant_ = 0, sum_ = 0, refreshed_energy_ = 0;
  std::array<double, kMaxLooks> ring_{};
  std::size_t next_ = 0;
  std::uint64_t refreshes_ = 0;
};

}  // namespace flyball::twin
