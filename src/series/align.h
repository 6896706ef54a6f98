#pragma once
// Two feeds that should tell the same: how far their clocks are apart, whether they drift, and which series of one is
// which of the other. Where the data cannot say, the answer is "not identifiable".

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stats.h"
#include "base/units.h"
#include "core/result_types.h"
#include "series/samples.h"

namespace flyball::series {

struct AlignOptions {
  Seconds max_offset = Seconds(120);  ///< on either side; clocks that may be a zone apart need 3,600 and more
  Seconds step;                       ///< of the comparison; 0 = the coarser of the two periods
  bool drift = true;                  ///< also look for a rate difference
};

struct Alignment {
  bool identifiable = false;
  Estimate offset_s;  ///< stamps of b minus stamps of a for the same moment; subtract it from b
  Estimate drift;     ///< seconds of offset gained per second; interval of 95 %; 0 if not asked for
  double correlation = 0;
  double runner_up = 0;  ///< the best correlation elsewhere: a periodic load has many nearly equal ones
  std::string note;
};

/// Cross-correlation of means on a common grid, refined by a parabola. Identifiable when the best offset beats every
/// other outside its own peak by 0.05 and by 3 standard errors of a correlation with the effective number of samples
/// (both series' memory is counted), and is not at the edge of the search.
Alignment align(const Samples& a, const Samples& b, const AlignOptions& options = {});

struct Match {
  std::optional<std::size_t> b;  ///< which series of b; empty: not identifiable
  double correlation = 0;
  double margin = 0;  ///< in standard errors over the second best of row and column
};

/// For each series of a its counterpart in b. What all nodes have in common tells nobody apart and is taken out first.
/// A pair needs to be the best for both and by 5 standard errors; the clocks must already agree.
std::vector<Match> match_identities(std::span<const Samples> a, std::span<const Samples> b, Seconds step = Seconds(0));

}  // namespace flyball::series
