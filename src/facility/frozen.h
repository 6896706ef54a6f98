#pragma once
// Meters that stand still: their last reading again and again looks like power and is none.

#include <cstddef>
#include <span>
#include <vector>

namespace flyball::facility {

struct Stretch {
  std::size_t first = 0, count = 0;
};

/// Where one reading is repeated at least 60 times and 20 times as often as 99 of 100 readings are: the repetitions,
/// the reading itself not among them. NaN is no reading and repeats nothing. Nothing is found in readings that hardly
/// ever change, for there standing still is usual.
std::vector<Stretch> frozen_stretches(std::span<const double> readings);

}  // namespace flyball::facility
