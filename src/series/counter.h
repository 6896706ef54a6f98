#pragma once
// Energy counters: increments and power from them, and whether to believe them.
//
// Power from a counter is a difference over the measured time between two successful reads. What cannot be a difference
// is named and gives no power: the first read, a repeat, a fall, a wrap that may have happened several times.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "core/result_types.h"
#include "series/integrate.h"
#include "series/series.h"

namespace flyball::series {

struct CounterOptions {
  /// Where the counter wraps (RAPL: max_energy_range_uj / 10^6). 0 = unknown: then a fall is a reset.
  Joules modulus;
  /// More than the device can draw: above it a difference is no energy. See plausible_power(Scope) in clean.h.
  Watts most = Watts(50'000);
};

enum class CounterEvent : std::uint8_t {
  first,           ///< baseline: no power yet
  advance,         ///< increment and power are good
  repeat,          ///< no new information; not 0 W
  wrapped,         ///< once past the modulus; increment and power are good, from before the fall
  wrap_ambiguous,  ///< could have wrapped more often in this time; nothing is counted
  fall_pending,    ///< fell: a dip, a wrap or a reset, the next read will tell
  dip_ignored,     ///< the fall was one bad read; increment and power are good, from before the dip
  reset,           ///< started anew; the energy since the last read before is unknown, nothing is counted for it
  implausible,     ///< more than the device can draw: a bad read, or a new baseline if the next agrees with it
  unusable,        ///< failed read, or a time that does not rise
};
std::string_view to_string(CounterEvent event);

struct CounterStep {
  CounterEvent event = CounterEvent::unusable;
  Joules increment;  ///< 0 unless the event says it is good
  Seconds span;      ///< measured time that the increment covers; 0 likewise
  Seconds lost;      ///< time about which nothing is known, ended by this read
  bool has_power() const { return span > Seconds(0); }
  Watts power() const { return has_power() ? increment / span : Watts(0); }
};

/// One pass, constant memory. `taken` is monotonic time.
class CounterReader {
 public:
  explicit CounterReader(const CounterOptions& options = {}) : options_(options) {}
  CounterStep read(MonoTime taken, Joules value, Status status = Status::ok);
  /// Of the last read that carried new information.
  std::optional<MonoTime> last_change() const;

 private:
  struct Mark {
    MonoTime at;
    Joules value;
  };
  CounterStep good(CounterEvent event, Mark to, Joules increment);
  CounterStep rebase(CounterEvent event, Mark from, Mark to);
  CounterStep after_doubt(Mark mark);
  bool plausible(Joules increment, Seconds span) const;

  CounterOptions options_;
  std::optional<Mark> last_;   ///< the newest read that is believed
  std::optional<Mark> doubt_;  ///< a read that fell or jumped, waiting for the next
};

struct CounterIntegral {
  Joules energy;
  Seconds asked;
  Seconds covered;
  std::vector<Point> power;  ///< at the end of each good span; W
  std::uint64_t advances = 0, repeats = 0, wraps = 0, ambiguous = 0, resets = 0, dips = 0, implausible = 0,
                unusable = 0;
  Seconds longest_repeat;      ///< longest time without a change
  std::vector<Interval> gaps;  ///< of the clip, if there was one: about these it says nothing
  double coverage_fraction() const { return asked > Seconds(0) ? std::min(1.0, covered / asked) : 0; }
};

/// `next` is the stretch of the same counter behind `sum`; the power at each span's end is not kept.
void add(CounterIntegral& sum, const CounterIntegral& next);

/// `counter` in J; its stamps are anchored monotonic times, as recordings have them. An increment that straddles an end
/// of the clip is divided by time.
CounterIntegral integrate_counter(std::span<const Point> counter, const CounterOptions& options = {},
                                  std::optional<Interval> clip = {});

enum class Believed : std::uint8_t { counter, integral, neither };
std::string_view to_string(Believed believed);

struct Divergence {
  Joules counter;
  Joules integral;
  double ratio = 0;  ///< counter / integral over the time that both cover; 0 if there is none
  bool diverges = false;
  Believed counts = Believed::counter;
  std::string reason;
};

/// A counter measures without pause, a power reading looks now and then: where they differ the counter counts, unless
/// it is stuck, in another unit, or misses time. Both are compared over the clip (default: the time both series share).
/// `threshold` as a fraction: 5 % is what sampled power of data-centre boards is known to miss at worst on average.
Divergence compare_counter(std::span<const Point> counter, std::span<const Point> power,
                           const CounterOptions& options = {}, double threshold = 0.05,
                           std::optional<Interval> clip = {});

/// The same of totals over one time, as far as each covers it.
Divergence compare_energies(const CounterIntegral& counter, const Integral& power, double threshold = 0.05);

}  // namespace flyball::series
