#include "facility/neighbours.h"

#include <algorithm>
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
/// A block so far away teaches nothing even where conditions are new.
constexpr double kAbsurd = 8;

}  // namespace

Neighbours::Local Neighbours::local(std::span<const double> x, WallTime leave_from, WallTime leave_to) const {
  double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0, squares = 0;
  double worth = 0, of_stretch = 0;
  std::int64_t stretch = 0;
  for (const Known& each : known_) {
    if (each.at >= leave_from && each.at < leave_to) continue;
    double distance = 0;
    for (std::size_t i = 0; i < x.size() && distance < kReach * kReach; ++i) {
      const double d = (each.x[i] - x[i]) / rule_.widths[i];
      distance += d * d;
    }
    if (distance >= kReach * kReach) continue;
    const double w = std::exp(-0.5 * distance), d = each.x[0] - x[0];
    // One stretch of hours is one time that it was so, however many blocks it has.
    if (const std::int64_t own = each.at.nanoseconds() / kStretchNs; own != stretch) {
      worth += std::min(of_stretch, kOfStretch);
      of_stretch = 0;
      stretch = own;
    }
    of_stretch += w;
    s0 += w, s1 += w * d, s2 += w * d * d, t0 += w * each.y, t1 += w * d * each.y, squares += w * each.y * each.y;
  }
  Local made;
  made.weight = worth + std::min(of_stretch, kOfStretch);
  if (s0 <= 0) return made;
  // Where all lie on one side or together, the mean is what is known.
  const double spread = s2 - s1 * s1 / s0;
  const double enough = 0.05 * s0 * rule_.widths[0] * rule_.widths[0];
  const double slope = (t1 - s1 * t0 / s0) / (std::max(spread, 0.0) + enough);
  made.mean = (t0 - slope * s1) / s0;
  const double left = squares - t0 * t0 / s0 - slope * (t1 - s1 * t0 / s0);
  made.sd = std::sqrt(std::max(left, 0.0) / s0);
  return made;
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
    const Local found = local(each.x, each.at - kStretch, each.at + kStretch);
    if (found.weight < kEnough / 2) continue;
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

Surprise Neighbours::take(WallTime at, std::span<const double> x, double y) {
  Surprise made;
  const Local found = local(x, WallTime(INT64_MAX), WallTime(INT64_MAX));
  made.expected = found.mean;
  made.difference = y - found.mean;
  if (found.weight < kEnough) {
    // What is far from the little that is known may be a fault, and is not made the rule.
    const bool absurd =
        found.weight >= 1 && std::abs(made.difference) > kAbsurd * sd_of(found) * std::sqrt(run_length_);
    if (!absurd) keep(at, x, y);
    learned_ = learned_ || known_.size() >= kFewest;
    return made;
  }
  made.known = true;
  made.doubt = 1 / std::sqrt(found.weight);
  made.sd = sd_of(found) * std::sqrt(run_length_ * (1 + 1 / found.weight));
  made.z = made.difference / made.sd;
  return made;
}

}  // namespace flyball::facility
