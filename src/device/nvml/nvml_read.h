#pragma once
// Turns the library's numbers into samples: units, sentinels, entry-wise status and plausibility. No number passes
// that cannot be true, and none takes the place of another source's.

#include "base/units.h"
#include "core/driver.h"
#include "core/reading.h"
#include "device/nvml/nvml_session.h"

namespace flyball::nvml {

/// Above any board sold: the largest modules are rated 2.7 kW (GB200), boards 1.4 kW (B300).
constexpr Watts kMaxBelievablePower{3000};
/// Below any board that is powered (idle boards draw 5 W and more); a number in the wrong member of a union is near 0.
constexpr Watts kMinBelievablePower{0.5};
/// Silicon shuts itself down near 105 °C and memory near 115 °C; the library has no negative temperatures.
constexpr Celsius kMaxBelievableTemperature{130};
/// Above any GPU clock (boost clocks end near 3 GHz, memory clocks near 14 GHz as the library counts GDDR).
constexpr Hertz kMaxBelievableSmClock{6e9};
constexpr Hertz kMaxBelievableMemoryClock{20e9};
/// The intended fan speed may exceed 100 % where the board allows it.
constexpr double kMaxBelievableFanFraction = 2.0;

/// A counter that stood still may catch up at once. Wide: this is to find flipped bits and other units, not stalls.
constexpr Seconds kMaxCounterLag{60};

/// A power or limit of `milliwatts`: 0, sentinels and the unbelievable are garbage.
Sample<Milliwatts> believe_limit(Return code, unsigned milliwatts);
Sample<Watts> believe_power(Return code, double milliwatts);
/// The number in the member of the union that the entry itself names; garbage for types that do not exist.
Sample<Watts> believe_field(const FieldValue& entry);
/// Energy must not fall, nor rise faster than any board draws. The first value that does is garbage; a second one
/// that agrees with it is a counter that was reset, and counts on from there.
Sample<Joules> believe_energy(Board& board, Return code, std::uint64_t millijoules, MonoTime at);
Sample<ThrottleReasons> believe_throttle(Return code, std::uint64_t bits);

/// Every value of one board; sets the board's state when the driver says it is lost. `ended` becomes the code that
/// ended the session, if one did.
void read_board(const NvmlApi& api, Board& board, const Clock& clock, GpuReading& reading, Return& ended);

PowerLimits read_limits(const NvmlApi& api, Board& board, Return& ended);

}  // namespace flyball::nvml
