#pragma once
// Numbers and words in text. Nothing here obeys the locale: a decimal point is a point.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace flyball {

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
std::string to_lower(std::string_view text);
bool is_printable_ascii(std::string_view text);

/// The whole of `text` as a finite number; "nan", "inf", hexadecimal and trailing words are errors.
Result<double> parse_double(std::string_view text);
Result<std::int64_t> parse_int(std::string_view text);

// A value with its unit, one blank allowed between: "250W", "2.4 kW". A bare number is refused and the message names
// the accepted form. Accepted: power mW W kW MW; energy J kJ MJ Wh kWh MWh; time ms s min h d; frequency Hz kHz MHz
// GHz.
Result<Watts> parse_watts(std::string_view text);
Result<Joules> parse_joules(std::string_view text);
Result<Seconds> parse_seconds(std::string_view text);
Result<Hertz> parse_hertz(std::string_view text);
/// "0.012" or "1.2%".
Result<double> parse_fraction(std::string_view text);

// For people: three to four significant digits with a fitting unit, "246.1 W", "2.40 kW", "1.70 GJ", "57 min".
std::string format(Watts power);
std::string format(Joules energy);
std::string format(Seconds time);
std::string format(Hertz frequency);
std::string format(Milliwatts limit);
/// "3.42 %"
std::string format_percent(double fraction, int decimals = 2);

/// For files: the shortest text that reads back to the same double.
std::string format_exact(double value);

}  // namespace flyball
