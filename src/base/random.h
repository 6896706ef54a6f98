#pragma once
// Seeded random numbers that are the same on every machine and library: standard distributions are not.

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace flyball {

/// xoshiro256++ (Blackman and Vigna, 2019), seeded by splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : state_) word = mix(seed += 0x9e3779b97f4a7c15ULL);
  }

  std::uint64_t bits() {
    const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n); n > 0. The bias is below n / 2^64.
  std::uint64_t below(std::uint64_t n) { return static_cast<std::uint64_t>((static_cast<Wide>(bits()) * n) >> 64); }
  bool chance(double probability) { return uniform() < probability; }

  /// Standard normal (Box and Muller); the second value of each pair is kept.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    spare_ = radius * std::sin(angle);
    has_spare_ = true;
    return radius * std::cos(angle);
  }

  /// An independent stream, so that adding a consumer does not shift the numbers of the others.
  Random fork(std::uint64_t stream) { return Random(bits() ^ mix(stream)); }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  std::array<std::uint64_t, 4> state_{};
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace flyball
