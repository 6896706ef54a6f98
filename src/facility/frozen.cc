#include "facility/frozen.h"

#include <algorithm>

#include "base/stats.h"

namespace flyball::facility {
namespace {

constexpr double kFewest = 60, kTimesUsual = 20, kUsual = 0.99;
constexpr std::size_t kFewestRuns = 100;  ///< so that one in a hundred means something

/// Equal readings in a row; NaN is equal to nothing.
std::vector<Stretch> runs_of(std::span<const double> readings) {
  std::vector<Stretch> runs;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (i > 0 && readings[i] == readings[i - 1]) {
      ++runs.back().count;
    } else {
      runs.push_back({i, 1});
    }
  }
  return runs;
}

}  // namespace

std::vector<Stretch> frozen_stretches(std::span<const double> readings) {
  std::vector<Stretch> runs = runs_of(readings);
  if (runs.size() < kFewestRuns) return {};
  std::vector<double> lengths;
  lengths.reserve(runs.size());
  for (const Stretch& run : runs) lengths.push_back(static_cast<double>(run.count));
  const double most = std::max(kFewest, kTimesUsual * quantile(lengths, kUsual));
  std::erase_if(runs, [&](const Stretch& run) { return static_cast<double>(run.count) <= most; });
  for (Stretch& run : runs) ++run.first, --run.count;
  return runs;
}

}  // namespace flyball::facility
