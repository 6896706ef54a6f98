#pragma once
// Time and power of a piece of work against the locked clock: what all work on a board has in common, and the few
// numbers of its own by which clocks that were not measured are told from those that were.

#include <span>
#include <string>

#include "base/result.h"
#include "curve/clock_table.h"
#include "curve/held_out.h"

namespace flyball::curve {

/// What belongs to the board and is pooled over pieces of work.
///
/// A board follows a lock only as far as its own limits let it: the clock that it runs at is the smooth minimum
///     g(f) = (f^−p + ceiling^−p)^(−1/p)
/// with a ceiling of each piece of work. Its time is a + b/g, a ≥ 0 being what does not follow the clock (memory), and
///     power = scale · (base + g/GHz · v(f)²),  v(f) = max(1, 1 + slope · (f − floor)/GHz)
/// for the voltage stays at a floor below a clock of the board's own (dynamic power goes with clock and voltage²).
struct ClockFamily {
  std::string learnt_from;
  double sharpness = 0;      ///< p
  double base = 0;           ///< power that does not follow the clock, in units of `scale`
  Hertz voltage_floor;       ///< at and below this clock the voltage does not fall any more
  double voltage_slope = 0;  ///< of the voltage above it, per GHz, of that at the floor
};

/// A100-SXM, learnt from the BLOOM stages of ml-energy/zeus branch kronos @1b1c4a9 (Apache-2.0).
const ClockFamily& clock_family();

/// By exhaustive search: what tells the clocks below `cut` best from those above it, over all the curves.
Result<ClockFamily> learn_clock_family(std::span<const ClockCurve> curves, Hertz cut, std::string name);

class ClockFit {
 public:
  /// Four different clocks at least.
  static Result<ClockFit> fit(std::span<const ClockSample> samples, const ClockFamily& family);
  /// The times as they are, power by another family.
  void fit_power(std::span<const ClockSample> samples, const ClockFamily& family);
  const ClockFamily& family() const { return family_; }
  Seconds time(Hertz clock) const;
  Watts power(Hertz clock) const;
  Joules energy(Hertz clock) const { return power(clock) * time(clock); }

 private:
  double running_ghz(Hertz clock) const;
  ClockFamily family_;
  double ceiling_ghz_ = 0;
  double fixed_ = 0, by_clock_ = 0;  // s, s·GHz
  double scale_ = 0;                 // W
};

struct ClockHeldOut {
  ErrorSummary time, energy;
  std::size_t curves = 0;
};
/// Fit on clocks from `cut` on, predict those below it: errors |predicted / measured − 1|, pooled over the curves.
Result<ClockHeldOut> held_out_below(std::span<const ClockCurve> curves, const ClockFamily& family, Hertz cut);

}  // namespace flyball::curve
