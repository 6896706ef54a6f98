#include "twin/parameter_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace flyball::twin {

std::string show(const std::string& v) { return v; }
std::string show(bool v) { return v ? "true" : "false"; }
std::string show(std::uint64_t v) { return fmt::format("{}", v); }
std::string show(double v) { return format_exact(v); }
std::string show(Watts v) { return format_exact(v.value()) + "W"; }
std::string show(Joules v) { return format_exact(v.value()) + "J"; }
std::string show(Seconds v) { return format_exact(v.value()) + "s"; }
std::string show(Hertz v) { return format_exact(v.value()) + "Hz"; }
std::string show(Celsius v) { return format_exact(v.value()) + "C"; }
std::string show(Volts v) { return format_exact(v.value()) + "V"; }

namespace {

template <class T>
Result<> assign(T& to, Result<T> value) {
  if (!value) return fail(value.error());
  to = *value;
  return {};
}

}  // namespace

Result<> read(std::string_view text, std::string& to) {
  if (text.empty() || text.size() > 95 || !is_printable_ascii(text)) {
    return fail(ErrorCode::input, "a name has 1 to 95 printable ASCII characters");
  }
  to = text;
  return {};
}
Result<> read(std::string_view text, bool& to) {
  if (text != "true" && text != "false") return fail(ErrorCode::input, fmt::format("'{}' is not true or false", text));
  to = text == "true";
  return {};
}
Result<> read(std::string_view text, std::uint64_t& to) {
  FLYBALL_ASSIGN(const std::int64_t value, parse_int(text));
  if (value < 0) return fail(ErrorCode::input, fmt::format("{} is negative", value));
  to = static_cast<std::uint64_t>(value);
  return {};
}
Result<> read(std::string_view text, double& to) { return assign(to, parse_fraction(text)); }
Result<> read(std::string_view text, Watts& to) { return assign(to, parse_watts(text)); }
Result<> read(std::string_view text, Joules& to) { return assign(to, parse_joules(text)); }
Result<> read(std::string_view text, Seconds& to) { return assign(to, parse_seconds(text)); }
Result<> read(std::string_view text, Hertz& to) { return assign(to, parse_hertz(text)); }
Result<> read(std::string_view text, Celsius& to) {
  std::string_view body = trim(text);
  if (!body.ends_with('C')) {
    return fail(ErrorCode::input, fmt::format("'{}' is not a temperature", text), {}, "write 35C");
  }
  body.remove_suffix(1);
  if (body.ends_with("°")) body.remove_suffix(std::string_view("°").size());
  FLYBALL_ASSIGN(const double value, parse_double(trim(body)));
  to = Celsius(value);
  return {};
}
Result<> read(std::string_view text, Volts& to) {
  std::string_view body = trim(text);
  if (!body.ends_with('V')) return fail(ErrorCode::input, fmt::format("'{}' is not a voltage", text), {}, "write 415V");
  body.remove_suffix(1);
  FLYBALL_ASSIGN(const double value, parse_double(trim(body)));
  to = Volts(value);
  return {};
}

void Complaints::add(const char* key, const std::string& value, const std::string& low, const std::string& high) {
  text_ += fmt::format("{}{} is {}, allowed is {} to {}", text_.empty() ? "" : "; ", key, value, low, high);
}

Result<> Complaints::result() const {
  if (text_.empty()) return {};
  return fail(ErrorCode::input, text_, {}, "set it inside the range");
}

}  // namespace flyball::twin
