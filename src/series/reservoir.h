#pragma once
// A fair sample of numbers that are seen once, for quantiles in bounded memory.

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/stats.h"

namespace flyball::series {

/// Keeps all up to `most`; of more, each stays with the same probability (Vitter, 1985).
class Reservoir {
 public:
  explicit Reservoir(std::size_t most) : most_(most) {}
  void add(double value, Random& random) {
    ++seen_;
    if (kept_.size() < most_) {
      kept_.push_back(value);
    } else if (const std::uint64_t place = random.below(seen_); place < most_) {
      kept_[place] = value;
    }
  }
  std::uint64_t seen() const { return seen_; }
  /// 0 of nothing.
  double quantile_of(double fraction) const { return kept_.empty() ? 0 : quantile(kept_, fraction); }

 private:
  std::size_t most_;
  std::uint64_t seen_ = 0;
  std::vector<double> kept_;
};

}  // namespace flyball::series
