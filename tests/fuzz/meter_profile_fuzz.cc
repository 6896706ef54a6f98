// A profile that is accepted reads back from what is written of it, to the same text.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "meter/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flyball::meter;
  const auto profile = parse_profile({reinterpret_cast<const char*>(data), size}, "fuzz.conf");
  if (!profile) return 0;
  const std::string text = profile_text(*profile);
  const auto again = parse_profile(text, "again.conf");
  if (!again || profile_text(*again) != text) std::abort();
  return 0;
}
