#pragma once
// Numbers out of text at the speed of a file: no allocation, no locale, no error text. parse_double and parse_int of
// base/text.h are the ones that explain themselves.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace flyball {

/// The whole of `text` as a finite decimal number; anything else, blanks, "nan" and "inf" too, is false. Correctly
/// rounded: up to 19 digits whose value is below 2^53 are exact in a double, and so is one division by a power of ten
/// up to 10^22 (Clinger, 1990); the rest goes to the standard library.
inline bool parse_decimal(std::string_view text, double& value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  const char* const first = at;
  std::uint64_t digits = 0;
  while (at != end && static_cast<unsigned char>(*at - '0') < 10)
    digits = digits * 10 + static_cast<unsigned>(*at++ - '0');
  auto count = at - first;
  std::size_t decimals = 0;
  if (at != end && *at == '.') {
    const char* const point = ++at;
    while (at != end && static_cast<unsigned char>(*at - '0') < 10) {
      digits = digits * 10 + static_cast<unsigned>(*at++ - '0');
    }
    decimals = static_cast<std::size_t>(at - point);
    count += at - point;
  }
  if (at == end && count > 0 && count <= 19 && digits < (1ULL << 53)) {
    const double magnitude = static_cast<double>(digits) / kPowers[decimals];
    value = negative ? -magnitude : magnitude;
    return true;
  }
  const auto [stop, error] = std::from_chars(text.data(), end, value, std::chars_format::general);
  return error == std::errc() && stop == end && std::isfinite(value);
}

/// The whole of `text` as a whole number of at most 18 digits.
inline bool parse_whole(std::string_view text, std::int64_t& value) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 18) return false;
  std::int64_t digits = 0;
  for (const char c : text) {
    const auto digit = static_cast<unsigned char>(c - '0');
    if (digit > 9) return false;
    digits = digits * 10 + digit;
  }
  value = negative ? -digits : digits;
  return true;
}

}  // namespace flyball
