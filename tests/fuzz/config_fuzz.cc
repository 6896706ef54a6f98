// Configuration files: any bytes are accepted or refused with an error, and what was accepted reads back.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = flyball::Config::parse(text, "fuzz", flyball::settings_keys());
  if (!config) {
    if (config.error().empty() || config.error().size() > 50) std::abort();
    return 0;
  }
  const auto settings = flyball::make_settings(*config);
  if (!settings && settings.error().empty()) std::abort();
  return 0;
}
