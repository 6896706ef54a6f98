#pragma once
// Values of parameters as text, and a check of their ranges. For the files that list parameters.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace flyball::twin {

std::string show(const std::string& v);
std::string show(bool v);
std::string show(std::uint64_t v);
std::string show(double v);
std::string show(Watts v);
std::string show(Joules v);
std::string show(Seconds v);
std::string show(Hertz v);
std::string show(Celsius v);
std::string show(Volts v);

// The text as the field's type; values carry their units.
Result<> read(std::string_view text, std::string& to);
Result<> read(std::string_view text, bool& to);
Result<> read(std::string_view text, std::uint64_t& to);
Result<> read(std::string_view text, double& to);
Result<> read(std::string_view text, Watts& to);
Result<> read(std::string_view text, Joules& to);
Result<> read(std::string_view text, Seconds& to);
Result<> read(std::string_view text, Hertz& to);
Result<> read(std::string_view text, Celsius& to);
Result<> read(std::string_view text, Volts& to);

/// Collects what is out of range, so that one message names it all.
class Complaints {
 public:
  template <class T>
  void between(const char* key, T value, T low, T high) {
    if (!(value >= low && value <= high)) add(key, show(value), show(low), show(high));
  }
  void fraction(const char* key, double value) { between(key, value, 0.0, 1.0); }
  Result<> result() const;

 private:
  void add(const char* key, const std::string& value, const std::string& low, const std::string& high);

  std::string text_;
};

}  // namespace flyball::twin
