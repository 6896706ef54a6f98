#pragma once
// From values to places on an axis, and the marks on it.

#include <string>
#include <vector>

#include "report/plot.h"

namespace flyball::report {

struct Tick {
  double value = 0;
  std::string label;
};

/// Maps [low, high] to pixels; logarithmic if asked.
class Scale {
 public:
  Scale(double low, double high, double first_pixel, double last_pixel, bool logarithmic);
  double pixel(double value) const;
  /// Whether it can be placed at all: finite, and positive on a logarithmic axis.
  bool places(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_;
  double high_;
  double first_pixel_;
  double last_pixel_;
  bool logarithmic_;
};

/// At most about `most` ticks in [low, high]: steps of 1, 2 or 5 times a power of ten; decades on a logarithmic axis;
/// steps of a clock (1, 2, 5, 10, 15, 30; 1, 2, 3, 6, 12 h) on a time axis.
std::vector<Tick> ticks(const Axis& axis, double low, double high, int most);

/// The step: 1, 2 or 5 times a power of ten, at least `least`.
double round_step(double least);

}  // namespace flyball::report
