#pragma once
// How often mean power over a window exceeds a budget: any set of windows and budgets in one pass.
//
// A sample is the mean power since the sample before it (what a meter's trailing average is); after a hole it stands
// for its own last period only. Time without a measurement belongs to no mean. A window is judged if at least
// `min_coverage` of it was measured; the others are counted as uncovered and never as kept.
// - Tumbling: windows follow each other from the start; the last one counts only if it is whole.
// - Sliding: a window ends at every sample and weighs as long as the sample; windows that would begin before the start
//   are not judged.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "series/samples.h"
#include "series/series.h"

namespace flyball::series {

/// Of one window and one budget, in one of the two ways.
struct Tally {
  std::uint64_t judged = 0;
  std::uint64_t violations = 0;
  std::uint64_t uncovered = 0;
  Seconds judged_time;  ///< tumbling: judged windows × width; sliding: time of the samples that end a judged window
  Seconds violation_time;
  Joules over;          ///< watt-seconds: excess of the mean over the budget × that time
  Watts worst_mean;     ///< greatest mean of any judged window, over the budget or not
  WallTime worst_stop;  ///< end of that window

  /// 0 when nothing could be judged: look at `judged`.
  double violation_fraction() const { return judged_time > Seconds(0) ? violation_time / judged_time : 0; }
};

struct Exceedance {
  Seconds window;
  Watts budget;
  Tally tumbling;
  Tally sliding;
  bool resolved = true;  ///< false if the window is shorter than the sampling period: then it is the samples' own means
};

struct WindowOptions {
  double min_coverage = 0.8;
  GapRule gap;                   ///< `bridge` is ignored
  std::optional<Interval> clip;  ///< default: from one period before the first good sample to the last
};

/// Half a second to five minutes, as the reports use them.
std::vector<Seconds> default_windows();

/// The same piece by piece, in memory that grows with the longest window only.
class ExceedanceMeter {
 public:
  /// `period` of the whole series; without a clip its first sample begins it.
  ExceedanceMeter(Seconds period, std::span<const Seconds> windows, std::span<const Watts> budgets,
                  const WindowOptions& options = {});
  ExceedanceMeter(const ExceedanceMeter&) = delete;
  ~ExceedanceMeter();
  /// Pieces in order of time, each behind the one before.
  void add(const Samples& piece);
  /// Ends the series.
  std::vector<Exceedance> result();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One result for each window and budget, budgets fastest. Windows that are not positive, and those after the
/// 64th, are left out.
std::vector<Exceedance> exceedance(const Samples& power, std::span<const Seconds> windows,
                                   std::span<const Watts> budgets, const WindowOptions& options = {});
std::vector<Exceedance> exceedance(std::span<const Point> power, std::span<const Seconds> windows,
                                   std::span<const Watts> budgets, const WindowOptions& options = {});

}  // namespace flyball::series
