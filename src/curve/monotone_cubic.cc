#include "curve/monotone_cubic.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace flyball::curve {
namespace {

/// Slope at an end from the two nearest pieces, made to keep the shape.
double end_slope(double h0, double h1, double d0, double d1) {
  const double slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);
  if (slope * d0 <= 0) return 0;
  if (d0 * d1 <= 0 && std::fabs(slope) > 3 * std::fabs(d0)) return 3 * d0;
  return slope;
}

std::vector<double> slopes(std::span<const double> x, std::span<const double> y) {
  const std::size_t n = x.size();
  std::vector<double> h(n - 1), d(n - 1), slope(n);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    h[i] = x[i + 1] - x[i];
    d[i] = (y[i + 1] - y[i]) / h[i];
  }
  if (n == 2) return {d[0], d[0]};
  slope.front() = end_slope(h[0], h[1], d[0], d[1]);
  slope.back() = end_slope(h[n - 2], h[n - 3], d[n - 2], d[n - 3]);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (d[i - 1] * d[i] <= 0) continue;  // a local extreme or a flat piece: level
    const double w1 = 2 * h[i] + h[i - 1];
    const double w2 = h[i] + 2 * h[i - 1];
    slope[i] = (w1 + w2) / (w1 / d[i - 1] + w2 / d[i]);
  }
  return slope;
}

}  // namespace

Result<MonotoneCubic> MonotoneCubic::through(std::span<const double> x, std::span<const double> y) {
  if (x.empty() || x.size() != y.size()) return fail(ErrorCode::input, "a curve needs at least one knot");
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return fail(ErrorCode::input, "a knot is not a finite number");
    if (i > 0 && !(x[i] > x[i - 1])) {
      return fail(ErrorCode::input, "knots must ascend: " + format_exact(x[i]) + " follows " + format_exact(x[i - 1]));
    }
  }
  MonotoneCubic cubic;
  cubic.x_.assign(x.begin(), x.end());
  cubic.y_.assign(y.begin(), y.end());
  if (x.size() > 1) cubic.slope_ = slopes(x, y);
  return cubic;
}

double MonotoneCubic::operator()(double x) const {
  if (x_.size() == 1 || x <= x_.front()) return y_.front();
  if (x >= x_.back()) return y_.back();
  const auto upper = std::upper_bound(x_.begin(), x_.end(), x);
  const auto i = static_cast<std::size_t>(upper - x_.begin()) - 1;
  const double h = x_[i + 1] - x_[i];
  const double t = (x - x_[i]) / h;
  const double s = 1 - t;
  return s * s * ((1 + 2 * t) * y_[i] + t * h * slope_[i]) + t * t * ((3 - 2 * t) * y_[i + 1] - s * h * slope_[i + 1]);
}

}  // namespace flyball::curve
