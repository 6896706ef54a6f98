#pragma once
// Curves as people have them in CSV files. One parser for all: a column map says which column is what.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "curve/curve.h"

namespace flyball::curve {

struct MeasuredCurve {
  std::string gpu;            ///< "V100"; of the column, or as the reader was told
  std::string workload;       ///< "squad bert_base_uncased, batch 32, adamw"
  std::string network;        ///< what curves are grouped by in intervals; the workload if nothing better is known
  std::vector<Point> points;  ///< ascending; rows of one limit are averaged (power by time)
  std::string name() const { return gpu + ": " + workload; }
};

struct SkippedRow {
  std::uint64_t line = 0;
  std::string reason;
};

struct CurveTable {
  std::vector<MeasuredCurve> curves;          ///< in order of first appearance
  std::map<std::string, std::string> header;  ///< "# key: value" lines before the column names
  std::vector<SkippedRow> skipped;            ///< the first kMostSkipped
  std::uint64_t skipped_count = 0;
  std::string format;  ///< which column map was used
  static constexpr std::size_t kMostSkipped = 100;
};

/// Known formats, by their column names:
///   gpu,workload,power_limit_w,time_s,power_w                                          flyball's own
///   dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power      training at each limit
///   model_name,…,batch_size,dp,tp,pp,…,power_limit_0…,time,energy,…                    one job on several GPUs; power
///                                                           of one = energy / time / GPUs, rows of unequal limits
///                                                           skipped
/// `gpu` names the board where the file does not. At most 1,000,000 rows; a row that cannot be used is skipped and
/// counted, an unknown format is an error that lists these.
Result<CurveTable> read_curves(ByteSource& bytes, const std::string& where, const std::string& gpu);

}  // namespace flyball::curve
