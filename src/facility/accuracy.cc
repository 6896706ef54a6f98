#include "facility/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace flyball::facility {

Accuracy accuracy(std::span<const Watts> measured, std::span<const Watts> predicted) {
  Accuracy made;
  std::vector<double> relative;
  Watts sum_measured, sum_error;
  double sum_squares = 0;
  for (std::size_t i = 0; i < std::min(measured.size(), predicted.size()); ++i) {
    if (!(measured[i] > Watts(0))) continue;
    const Watts error = predicted[i] - measured[i];
    relative.push_back(std::abs(error / measured[i]));
    made.mape_fraction += relative.back();
    sum_measured += measured[i];
    sum_error += error;
    sum_squares += error.value() * error.value();
  }
  made.intervals = relative.size();
  const auto n = static_cast<double>(relative.size());
  if (relative.empty()) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {0, none, none, none, none};
  }
  made.mape_fraction /= n;
  made.p95_fraction = quantile(relative, 0.95);
  made.nmbe_fraction = sum_error / sum_measured;
  made.cvrmse_fraction = std::sqrt(sum_squares / n) / (sum_measured.value() / n);
  return made;
}

double lag_one_correlation(std::span<const double> values) {
  if (values.size() < 3) return 0;
  double mean = 0;
  for (const double v : values) mean += v;
  mean /= static_cast<double>(values.size());
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
    if (i > 0) products += (values[i] - mean) * (values[i - 1] - mean);
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 0.99) : 0;
}

double effective_count(double count, double lag_one) { return count * (1 - lag_one) / (1 + lag_one); }

}  // namespace flyball::facility
