#pragma once
// Sums over meters that count every watt once: one level for a total, what it covers, and what is left between levels.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "topology/tree.h"

namespace flyball::topology {

/// Readings of all meters at one time, in the order of `Tree::meters`; nothing: the meter said nothing.
using Readings = std::span<const std::optional<Watts>>;

struct Total {
  Watts power;
  std::size_t meters = 0;           ///< that said something
  double coverage_fraction = 0;     ///< of the ends of all branches (GPUs, cooling, …), how much is seen; a part with
                                    ///< feeds A and B of which one is seen is half covered
  std::vector<std::string> silent;  ///< meters of this total that said nothing
};

/// Of the meters named. Two of which one sees what the other sees already are an error that names the pair.
Result<Total> total_of(const Tree& tree, std::span<const std::size_t> meters, Readings readings);
/// Of all meters on parts of one kind; with `cooling`, those on cooling beside them that no such meter sees.
Result<Total> total_at(const Tree& tree, PartKind level, bool cooling, Readings readings);

/// What goes into parts that feed a common set, and what comes out: with feeds A and B nobody knows which watt took
/// which way, so parts that share a load are balanced together.
struct Balance {
  std::vector<PartIndex> sources, loads;
  Watts in, out;
  double coverage_fraction = 0;  ///< share of the loads that are metered and said something
  /// in − out: losses and what is not metered below. Below zero a meter, its scale or its clock is wrong.
  Watts residual() const { return in - out; }
};

/// For all metered parts that feed something, where every source of the group said something.
std::vector<Balance> balances(const Tree& tree, Readings readings);

/// Parts whose meter shows more than their rating.
std::vector<PartIndex> over_rating(const Tree& tree, Readings readings);

}  // namespace flyball::topology
