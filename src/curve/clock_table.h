#pragma once
// Time and energy of a piece of work at each locked clock, as people have them in CSV files.

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "curve/table.h"

namespace flyball::curve {

struct ClockSample {
  Hertz clock;
  Seconds time;
  Joules energy;
};

struct ClockCurve {
  std::string workload;              ///< "stage 3, backward"
  std::vector<ClockSample> samples;  ///< ascending in the clock; rows of one clock are averaged
};

struct ClockTable {
  std::vector<ClockCurve> curves;  ///< in order of first appearance
  std::vector<SkippedRow> skipped;
  std::uint64_t skipped_count = 0;
};

/// The columns are those of a table by clock.
bool names_clocks(std::string_view header_line);

/// Columns: frequency or clock_mhz (MHz), time (s), energy (J); all others are the name of the work. A row that cannot
/// be used is skipped and counted.
Result<ClockTable> read_clock_curves(ByteSource& bytes, const std::string& where);

}  // namespace flyball::curve
