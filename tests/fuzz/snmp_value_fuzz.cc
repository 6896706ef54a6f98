// Octets of any kind as a number, a clock and an object's name.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "meter/snmp/value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flyball::meter;
  SnmpValue value;
  value.kind = SnmpKind::text;
  value.text.assign(reinterpret_cast<const char*>(data), size);
  const auto number = snmp_number(value, PointProfile());
  if (number.said.ok() ? !std::isfinite(*number.said) : number.reason.empty()) std::abort();
  (void)date_and_time(value.text);
  const auto oid = parse_oid(value.text);
  if (oid.size() > 128) std::abort();
  return 0;
}
