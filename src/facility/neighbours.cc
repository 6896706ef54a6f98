#include "facility/neighbours.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace flyball::facility {
namespace {

constexpr std::size_t kFewest = 48, kMost = 6000;
/// So many times alike are needed before the next one is judged.
constexpr double kEnough = 15;
/// One stretch of six hours counts for so many blocks at most.
constexpr double kOfStretch = 5;
constexpr std::int64_t kStretchNs = 6 * 3600'000'000'000LL;
/// Beyond so many widths nothing is alike.
constexpr double kReach = 2.5;
/// What is learned late comes in days; a stretch of the reference is judged by the others.
constexpr Seconds kStretch = Seconds(12 * 3600.0);
/// What a plane leaves of a curve grows with the square of the way beyond the times alike: by so much of an sd.
constexpr double kBend = 0.1;
/// A block so far away teaches nothing even where conditions are new.
constexpr double kAbsurd = 8;

}  // namespace

namespace {

constexpr std::size_t kMostConditions = 4;

/// Weighted least squares of a plane through times alike; slopes are held back where the times do not spread.
struct Plane {
  static constexpr std::size_t kTerms = kMostConditions + 1;
  std::array<std::array<double, kTerms>, kTerms> a{};
  std::array<double, kTerms> b{};
  double squares = 0;

  void add(double w, std::span<const double> d, double y) {
    std::array<double, kTerms> x{1};
    std::copy(d.begin(), d.end(), x.begin() + 1);
    for (std::size_t i = 0; i <= d.size(); ++i) {
      for (std::size_t j = 0; j <= i; ++j) a[i][j] += w * x[i] * x[j];
      b[i] += w * x[i] * y;
    }
    squares += w * y * y;
  }
  struct Middle {
    double value = 0;
    double left = 0;      ///< of the squares
    double leverage = 1;  ///< how much less sure the middle is than a mean: 1 amid the times, more beyond them
  };
  /// Cholesky's decomposition.
  Middle solve(std::size_t conditions, double middle) {
    constexpr double kHold = 0.05;
    const double s0 = a[0][0];
    const std::size_t n = conditions + 1;
    // About the mean, so that holding slopes back does not hold back the level.
    for (std::size_t i = 0; i < n; ++i) b[i] -= middle * (i == 0 ? s0 : a[i][0]);
    squares += middle * middle * s0 - 2 * middle * (b[0] + middle * s0);
    const std::array<double, kTerms> rhs = b;
    for (std::size_t i = 1; i < n; ++i) a[i][i] += kHold * s0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = a[i][j];
        for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
        a[i][j] = i == j ? std::sqrt(std::max(sum, 1e-12 * s0)) : sum / a[j][j];
      }
      for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
      b[i] /= a[i][i];
    }
    // Of the middle: e A⁻¹ e by the same factors.
    double leverage = 0;
    std::array<double, kTerms> e{1};
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) e[i] -= a[i][k] * e[k];
      e[i] /= a[i][i];
      leverage += e[i] * e[i];
    }
    double left = squares;
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
      b[i] /= a[i][i];
    }
    for (std::size_t i = 0; i < n; ++i) left -= b[i] * rhs[i];
    return {b[0] + middle, std::max(left, 0.0), std::max(leverage * s0, 1.0)};
  }
};

}  // namespace

Neighbours::Local Neighbours::local(std::span<const double> x, double wider, WallTime leave_from,
                                    WallTime leave_to) const {
  Plane plane;
  double worth = 0, of_stretch = 0, sum = 0;
  std::int64_t stretch = 0;
  std::array<double, kMostConditions> d{};
  for (const Known& each : known_) {
    if (each.at >= leave_from && each.at < leave_to) continue;
    double distance = 0;
    for (std::size_t i = 0; i < x.size() && distance < kReach * kReach; ++i) {
      d[i] = (each.x[i] - x[i]) / (wider * rule_.widths[i]);
      distance += d[i] * d[i];
    }
    if (distance >= kReach * kReach) continue;
    const double w = std::exp(-0.5 * distance);
    // One stretch of hours is one time that it was so, however many blocks it has.
    if (const std::int64_t own = each.at.nanoseconds() / kStretchNs; own != stretch) {
      worth += std::min(of_stretch, kOfStretch);
      of_stretch = 0;
      stretch = own;
    }
    of_stretch += w;
    sum += w * each.y;
    plane.add(w, {d.data(), x.size()}, each.y);
  }
  Local made;
  made.weight = worth + std::min(of_stretch, kOfStretch);
  const double all = plane.a[0][0];
  if (all <= 0) return made;
  const Plane::Middle middle = plane.solve(x.size(), sum / all);
  made.mean = middle.value;
  made.sd = std::sqrt(middle.left / all);
  made.weight /= middle.leverage;
  made.beyond = middle.leverage - 1;
  return made;
}

/// As near as enough times are.
Neighbours::Local Neighbours::nearest(std::span<const double> x, WallTime leave_from, WallTime leave_to) const {
  Local found;
  for (const double wider : {1.0, 1.7, 2.6}) {
    found = local(x, wider, leave_from, leave_to);
    if (found.weight >= kEnough) break;
  }
  return found;
}

double Neighbours::sd_of(const Local& local) const {
  const double own = std::max(local.sd, rule_.least_sd);
  return std::hypot(own, rule_.relative_sd * local.mean);
}

void Neighbours::learn(std::span<const Lesson> lessons) {
  for (const Lesson& lesson : lessons) known_.push_back({lesson.at, lesson.x, lesson.y});
  oldest_ = known_.size();
  if (known_.size() < kFewest) return;
  std::vector<double> z;
  for (const Known& each : known_) {
    const Local found = nearest(each.x, each.at - kStretch, each.at + kStretch);
    if (found.weight < kEnough) continue;
    z.push_back(std::clamp((each.y - found.mean) / sd_of(found), -4.0, 4.0));
  }
  learned_ = true;
  if (z.size() < kFewest) return;
  double squares = 0;
  for (const double each : z) squares += each * each;
  // How much more the other days scatter than the times alike do, and for how long they err alike.
  const double more = std::max(squares / static_cast<double>(z.size()), 1.0);
  constexpr double kLeastRun = 6;
  run_length_ = std::max(more * variance_inflation(z, 0), kLeastRun);
}

void Neighbours::keep(WallTime at, std::span<const double> x, double y) {
  Known made{at, {x.begin(), x.end()}, y};
  if (known_.size() < kMost) {
    known_.push_back(std::move(made));
  } else if (oldest_ < kMost) {
    known_[oldest_] = std::move(made);
    oldest_ = oldest_ + 1 == kMost ? kMost / 2 : oldest_ + 1;
  }
}

Surprise Neighbours::take(WallTime at, std::span<const double> x, double y, bool suspicion) {
  Surprise made;
  const Local found = nearest(x, WallTime(INT64_MAX), WallTime(INT64_MAX));
  made.expected = found.mean;
  made.difference = y - found.mean;
  if (found.weight < kEnough) {
    // What is far from the little that is known may be a fault, and is not made the rule.
    const bool absurd =
        found.weight >= 1 && std::abs(made.difference) > kAbsurd * sd_of(found) * std::sqrt(run_length_);
    if (!absurd && !suspicion) keep(at, x, y);
    learned_ = learned_ || known_.size() >= kFewest;
    return made;
  }
  made.known = true;
  made.doubt = std::hypot(1 / std::sqrt(found.weight), kBend * found.beyond);
  made.sd = sd_of(found) * std::sqrt(run_length_ * (1 + made.doubt * made.doubt));
  made.z = made.difference / made.sd;
  return made;
}

}  // namespace flyball::facility
