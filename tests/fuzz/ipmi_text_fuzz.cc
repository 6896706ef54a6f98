// Output of any kind of `ipmitool`: a value is finite with a unit, or absent with a reason.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "meter/ipmi/text.h"

namespace {
void check(const flyball::meter::IpmiValue& value) {
  if (value.said.ok() ? !std::isfinite(*value.said) : value.reason.empty()) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view output(reinterpret_cast<const char*>(data), size);
  check(flyball::meter::parse_dcmi(output));
  for (const auto& [name, value] : flyball::meter::parse_sensors(output)) check(value);
  return 0;
}
