#pragma once
// The time that one reading of a device may take, shared by its requests.

#include <algorithm>

#include "base/clock.h"

namespace flyball::meter {

class Budget {
 public:
  Budget(const Clock& clock, Seconds whole) : clock_(clock), until_(clock.now() + whole) {}
  Seconds left() const { return std::max(Seconds(0), until_ - clock_.now()); }
  bool over() const { return left() <= Seconds(0); }

 private:
  const Clock& clock_;
  MonoTime until_;
};

}  // namespace flyball::meter
