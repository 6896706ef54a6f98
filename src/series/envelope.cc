#include "series/envelope.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

namespace flyball::series {
namespace {

// Extreme over values[i .. i + width - 1], cut at the ends, for i from 1 - width: size n + width - 1. By extremes from
// the left and right borders of blocks of that width (van Herk, 1992): three comparisons a value whatever the width.
template <class Better>
std::vector<double> extreme(std::span<const double> values, std::size_t width, Better better) {
  const double worst = better(1.0, 0.0) ? -INFINITY : INFINITY;
  const std::size_t size = values.size() + width - 1;
  const auto pick = [&](double a, double b) { return better(a, b) ? a : b; };
  std::vector<double> wide(size + width - 1, worst);
  std::copy(values.begin(), values.end(), wide.begin() + static_cast<std::ptrdiff_t>(width - 1));
  std::vector<double> to_right(wide), out(size);
  for (std::size_t i = wide.size() - 1; i-- > 0;)
    if ((i + 1) % width != 0) to_right[i] = pick(to_right[i + 1], wide[i]);
  for (std::size_t i = 1; i < wide.size(); ++i)
    if (i % width != 0) wide[i] = pick(wide[i - 1], wide[i]);
  for (std::size_t i = 0; i < size; ++i) out[i] = pick(to_right[i], wide[i + width - 1]);
  return out;
}

template <class First, class Second>
std::vector<double> filter(std::span<const double> values, std::size_t width, First first, Second second) {
  if (width < 2 || values.empty()) return {values.begin(), values.end()};
  const auto wide = extreme(values, width, first);
  const auto back = extreme(std::span<const double>(wide), width, second);
  return {back.begin() + static_cast<std::ptrdiff_t>(width - 1),
          back.begin() + static_cast<std::ptrdiff_t>(width - 1 + values.size())};
}

// Index of the first value of the upper class in sorted values: greatest variance between the classes.
std::size_t otsu(const std::vector<double>& sorted) {
  double total = 0;
  for (double v : sorted) total += v;
  const double n = static_cast<double>(sorted.size());
  double below = 0, best = -1;
  std::size_t place = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    below += sorted[i - 1];
    const double k = static_cast<double>(i);
    const double difference = (total - below) / (n - k) - below / k;
    const double between = k * (n - k) * difference * difference;
    if (between > best) best = between, place = i;
  }
  return place;
}

// The value that stands at this fraction in order; the values are moved about.
double at_fraction(std::vector<double>& values, double fraction) {
  const double x = fraction * static_cast<double>(values.size() - 1);
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::lround(x));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Sorted by the bits of the numbers, eleven at a time: in linear time, which views of long recordings need.
std::vector<double> sorted_values(std::span<const double> values) {
  constexpr int kBits = 11;
  constexpr std::size_t kBuckets = 1U << kBits;
  constexpr std::size_t kSmall = 2048;
  if (values.size() < kSmall) {
    std::vector<double> small(values.begin(), values.end());
    std::sort(small.begin(), small.end());
    return small;
  }
  std::vector<std::uint64_t> keys(values.size()), other(values.size());
  // Negative numbers have all bits turned, others the first: then they are in order as whole numbers.
  constexpr std::uint64_t kSign = 1ULL << 63;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(values[i]);
    keys[i] = (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  for (int shift = 0; shift < 64; shift += kBits) {
    std::array<std::size_t, kBuckets> place{};
    for (const std::uint64_t key : keys) ++place[(key >> shift) % kBuckets];
    std::size_t sum = 0;
    for (std::size_t& p : place) sum += std::exchange(p, sum);
    for (const std::uint64_t key : keys) other[place[(key >> shift) % kBuckets]++] = key;
    keys.swap(other);
  }
  std::vector<double> sorted(values.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    sorted[i] = std::bit_cast<double>((keys[i] & kSign) != 0 ? keys[i] & ~kSign : ~keys[i]);
  return sorted;
}

// The values on each side of a cut, without those at the transitions: a sample across a boundary belongs to neither.
// A run below the cut that is too short to have an inside is no level of its own: it counts as the majority's noise.
void divide(std::span<const double> values, double cut, std::vector<double>& low, std::vector<double>& high) {
  const std::size_t n = values.size();
  std::vector<char> drop(n, 0), below(n, 0);
  for (std::size_t i = 0; i < n;) {
    std::size_t end = i;
    while (end < n && values[end] < cut) ++end;
    if (end - i >= 3) {
      std::fill(below.begin() + static_cast<std::ptrdiff_t>(i), below.begin() + static_cast<std::ptrdiff_t>(end), 1);
      drop[i] = drop[end - 1] = 1;
      if (i > 0) drop[i - 1] = 1;
      if (end < n) drop[end] = 1;
    }
    i = std::max(end, i + 1);
  }
  for (std::size_t i = 0; i < n; ++i)
    if (drop[i] == 0) (below[i] != 0 ? low : high).push_back(values[i]);
}

}  // namespace

std::vector<double> closing(std::span<const double> values, std::size_t width) {
  return filter(values, width, std::greater<double>(), std::less<double>());
}

std::vector<double> opening(std::span<const double> values, std::size_t width) {
  return filter(values, width, std::less<double>(), std::greater<double>());
}

std::vector<double> moving_mean(std::span<const double> values, double width) {
  std::vector<double> upto(values.size() + 1, 0);
  for (std::size_t i = 0; i < values.size(); ++i) upto[i + 1] = upto[i] + values[i];
  const auto area = [&](double x) {
    const auto k = std::min(static_cast<std::size_t>(x), values.size() - 1);
    return upto[k] + (x - static_cast<double>(k)) * values[k];
  };
  std::vector<double> out(values.size());
  const double n = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double middle = static_cast<double>(i) + 0.5;
    const double from = std::max(0.0, middle - width / 2), to = std::min(n, middle + width / 2);
    out[i] = (area(to) - area(from)) / (to - from);
  }
  return out;
}

Separation separation_below(std::span<const double> values, double max_minority_fraction) {
  Separation out;
  if (values.size() < 8) return out;
  const std::vector<double> sorted = sorted_values(values);
  const std::size_t split = otsu(sorted);
  out.minority_fraction = static_cast<double>(split) / static_cast<double>(sorted.size());
  if (split == 0 || out.minority_fraction > max_minority_fraction) return out;
  std::vector<double> low, high;
  divide(values, (sorted[split - 1] + sorted[split]) / 2, low, high);
  if (low.empty() || high.empty()) return out;
  const double ceiling = at_fraction(low, 0.99), floor = at_fraction(high, 0.01);
  const double middle = at_fraction(high, 0.5), spread = middle - floor;
  out.threshold = (ceiling + floor) / 2;
  out.difference = middle - at_fraction(low, 0.5);
  if (floor > ceiling) out.ratio = spread > 0 ? std::min(1e6, (floor - ceiling) / spread) : 1e6;
  return out;
}

}  // namespace flyball::series
