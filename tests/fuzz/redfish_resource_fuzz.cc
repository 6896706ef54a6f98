// A pointer (up to the first line end) into a document of any kind: a value is finite or absent with a reason.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "meter/redfish/resource.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto end = bytes.find('\n');
  const std::string pointer(bytes.substr(0, end));
  const auto body = end == std::string_view::npos ? std::string_view() : bytes.substr(end + 1);
  const auto value = flyball::meter::redfish_value(body, pointer);
  if (value.said.ok() ? !std::isfinite(*value.said) : value.reason.empty()) std::abort();
  (void)flyball::meter::redfish_text(body, pointer);
  return 0;
}
