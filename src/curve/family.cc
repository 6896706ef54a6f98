#include "curve/family.h"

#include <cmath>

namespace flyball::curve {
namespace {

std::array<double, 3> features(const Family& family, double x) {
  const double z = -(x - family.start) / family.width;
  const double s = family.width * (z > 30 ? z : std::log1p(std::exp(z)));
  return {s, s * s, s * s * s};
}

/// 0 where the limit does not bind, 1 where it binds hard.
double binding(const Family& family, double x) { return 1 / (1 + std::exp((x - family.start) / family.width)); }

// Fitted by marginal likelihood to the P100 curves of ml-energy/zeus @75a8b93 (Apache-2.0, 45 jobs, 6 limits). The
// spreads were then widened by the distance between boards (P100 against the training limits of V100 and A100), since
// the board at hand is not the one fitted. V100 and A100 held-out limits were not used.
constexpr std::array<Family, 2> kTime{{
    {.width = 0.321,
     .start = -0.214,
     .mean = {0.25, 1.44, -0.09},
     .spread = {0.55, 2.0, 5.0},
     .residual_sd = 0.0288,
     .residual_length = 0.155,
     .wander = 1.06,
     .noise_median = 0.005,
     .noise_log_sd = 1.24},
    {.width = 0.15,
     .start = 0,
     .mean = {0.2, 0.6, 0},
     .spread = {0.55, 2.0, 5.0},
     .residual_sd = 0.0288,
     .residual_length = 0.155,
     .wander = 1.06,
     .noise_median = 0.001,
     .noise_log_sd = 0.7},
}};

// Below its unlimited power a board draws what it is allowed: slope 1 in logs, somewhat less where it cannot follow.
constexpr Family kPower{.width = 0.1,
                        .start = 0,
                        .mean = {-0.95, 0, 0},
                        .spread = {0.3, 0.5, 0.1},
                        .residual_sd = 0.02,
                        .residual_length = 0.2,
                        .wander = 1,
                        .noise_median = 0.005,
                        .noise_log_sd = 1.2};

constexpr double kFactors[] = {0.5, 1, 2};

std::array<BoardShape, 9> all_shapes() {
  std::array<BoardShape, 9> shapes;
  std::size_t i = 0;
  for (const double sd : kFactors) {
    for (const double length : kFactors) {
      // Log-normal of one e-fold, as little as is known of a board.
      const double a = std::log(sd), b = std::log(length);
      shapes[i++] = {sd, length, -(a * a + b * b) / 2};
    }
  }
  return shapes;
}

}  // namespace

double Family::mean_at(double x) const {
  const auto s = features(*this, x);
  return mean[0] * s[0] + mean[1] * s[1] + mean[2] * s[2];
}

double Family::covariance(double x, double y, double noise) const {
  const auto a = features(*this, x), b = features(*this, y);
  double shared = 0;
  for (std::size_t i = 0; i < 3; ++i) shared += spread[i] * spread[i] * a[i] * b[i];
  const auto amplitude = [&](double z) { return std::hypot(wander * noise, residual_sd * binding(*this, z)); };
  const double apart = (x - y) / residual_length;
  return shared + amplitude(x) * amplitude(y) * std::exp(-apart * apart / 2);
}

std::span<const BoardShape> board_shapes() {
  static const std::array<BoardShape, 9> shapes = all_shapes();
  return shapes;
}

Family shaped(const Family& family, const BoardShape& shape) {
  Family made = family;
  made.residual_sd *= shape.residual_sd;
  made.residual_length *= shape.residual_length;
  return made;
}

std::span<const Family> time_families() { return kTime; }
const Family& power_family() { return kPower; }

}  // namespace flyball::curve
