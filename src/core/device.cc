#include "core/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace flyball {

Result<DeviceId> DeviceId::parse(std::string_view text) {
  constexpr std::size_t kLongest = 96;
  const std::string shown(text.substr(0, kLongest));
  const auto refuse = [&](const char* why) {
    return fail(ErrorCode::input, "'" + shown + "' is not a device: " + why, {},
                "name it by its UUID, as `flyball doctor` lists it");
  };
  if (text.empty()) return refuse("it is empty");
  if (text.size() > kLongest) return refuse("it is longer than 96 characters");
  if (!is_printable_ascii(text) || text.find_first_of(" \"',\\") != std::string_view::npos) {
    return refuse("it holds blanks, quotes, commas or characters outside printable ASCII");
  }
  if (std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return refuse("an index changes its meaning with order and reboot");
  }
  DeviceId id;
  id.text_ = text;
  return id;
}

DeviceId DeviceId::of(std::string_view text) {
  auto id = parse(text);
  if (!id) {
    std::fprintf(stderr, "flyball: %s\n", id.error().message().c_str());
    std::abort();
  }
  return *std::move(id);
}

std::string_view to_string(DeviceState state) {
  switch (state) {
    case DeviceState::ok:
      return "ok";
    case DeviceState::lost:
      return "lost";
    case DeviceState::hung:
      return "hung";
    case DeviceState::not_ready:
      return "not_ready";
  }
  return "unknown";
}

}  // namespace flyball
