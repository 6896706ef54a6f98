#pragma once
// Numbers out of text at the speed of a file: no allocation, no locale, no error text. parse_double and parse_int of
// base/text.h are the ones that explain themselves.

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace flyball {

/// Reads digits with at most one point from `at` on and moves `at` behind them. False, and nothing read, where the
/// result could be rounded wrongly or there is no digit: up to 19 digits whose value is below 2^53 are exact in a
/// double, and one division by an exact power of ten rounds once (Clinger, 1990).
inline bool take_decimal(const char*& at, const char* end, double& value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
  const char* next = at;
  const bool negative = next != end && *next == '-';
  if (negative) ++next;
  const char* const first = next;
  std::uint64_t digits = 0;
  for (; next != end && static_cast<unsigned char>(*next - '0') < 10; ++next) {
    digits = digits * 10 + static_cast<unsigned char>(*next - '0');
  }
  auto count = next - first;
  std::ptrdiff_t decimals = 0;
  if (next != end && *next == '.') {
    const char* const point = ++next;
    for (; next != end && static_cast<unsigned char>(*next - '0') < 10; ++next) {
      digits = digits * 10 + static_cast<unsigned char>(*next - '0');
    }
    decimals = next - point;
    count += decimals;
  }
  if (count == 0 || count > 19 || digits >= (1ULL << 53)) return false;
  const double magnitude = static_cast<double>(digits) / kPowers[decimals];
  value = negative ? -magnitude : magnitude;
  at = next;
  return true;
}

/// As take_decimal, for texts of which 16 bytes behind `end` may be read (a reader's buffer): numbers of up to seven
/// digits on either side of the point take no branch on their length, which a processor cannot foresee.
inline bool take_padded_decimal(const char*& at, const char* end, double& value) {
  if constexpr (std::endian::native != std::endian::little) return take_decimal(at, end, value);
  static constexpr double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
  static constexpr std::uint64_t kWholePowers[] = {1, 10, 100, 1'000, 10'000, 100'000, 1'000'000, 10'000'000};
  // Whole words: Lemire, "Quickly parsing eight digits" (2018); the count of leading digits by the bytes' high halves.
  const auto leading_digits = [](std::uint64_t word) {
    const std::uint64_t odd = ((word & 0xf0f0f0f0f0f0f0f0) ^ 0x3030303030303030) |
                              (((word + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) ^ 0x3030303030303030);
    return odd == 0 ? 8 : std::countr_zero(odd) / 8;
  };
  const auto number = [](std::uint64_t word, int count) {
    if (count == 0) return std::uint64_t{0};
    word = (word & 0x0f0f0f0f0f0f0f0f) << (64 - 8 * count);
    word = word * 10 + (word >> 8);
    return (((word & 0x000000ff000000ff) * 0x000f424000000064) +
            (((word >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >>
           32;
  };
  const bool negative = *at == '-';
  const char* next = at + (negative ? 1 : 0);
  std::uint64_t word = 0;
  std::memcpy(&word, next, sizeof word);
  const int whole_digits = leading_digits(word);
  if (whole_digits == 8 || whole_digits == 0) return take_decimal(at, end, value);
  std::uint64_t digits = 0;
  int decimals = 0;
  if (next[whole_digits] != '.') {
    digits = number(word, whole_digits);
    next += whole_digits;
  } else {
    // Seven bytes at most are left behind the point; zeros, which are no digits, follow them.
    const std::uint64_t behind = whole_digits == 7 ? 0 : word >> (8 * whole_digits + 8);
    decimals = leading_digits(behind);
    if (whole_digits + 1 + decimals < 8) {
      const std::uint64_t front = word & ((1ULL << (8 * whole_digits)) - 1);
      digits = number(front | behind << (8 * whole_digits), whole_digits + decimals);
    } else {
      std::memcpy(&word, next + whole_digits + 1, sizeof word);
      decimals = leading_digits(word);
      if (decimals == 8) return take_decimal(at, end, value);
      std::uint64_t whole = 0;
      std::memcpy(&whole, next, sizeof whole);
      digits = number(whole, whole_digits) * kWholePowers[decimals] + number(word, decimals);
    }
    next += whole_digits + 1 + decimals;
  }
  if (next > end) return take_decimal(at, end, value);  // the text ends inside the number, for one that is joined on
  const double magnitude = static_cast<double>(digits) / kPowers[decimals];
  value = negative ? -magnitude : magnitude;
  at = next;
  return true;
}

/// Eight digits at `at` as a number; false where one of the bytes is none. Reads exactly those bytes.
inline bool eight_digits(const char* at, std::uint64_t& value) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  const std::uint64_t odd = ((word & 0xf0f0f0f0f0f0f0f0) ^ 0x3030303030303030) |
                            (((word + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) ^ 0x3030303030303030);
  word = (word & 0x0f0f0f0f0f0f0f0f) * 10 + ((word & 0x0f0f0f0f0f0f0f0f) >> 8);
  value = (((word & 0x000000ff000000ff) * 0x000f424000000064) +
           (((word >> 16) & 0x000000ff000000ff) * 0x0000271000000001)) >>
          32;
  return odd == 0;
}

/// The whole of `text` as a finite decimal number; anything else, blanks, "nan" and "inf" too, is false.
inline bool parse_decimal(std::string_view text, double& value) {
  const char* at = text.data();
  const char* const end = at + text.size();
  if (take_decimal(at, end, value) && at == end) return true;
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
