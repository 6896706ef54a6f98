#pragma once
// A board that has not told its UUID, because it was lost or hung before anyone asked, is listed all the same.

#include <cstddef>
#include <string>
#include <string_view>

#include "core/device.h"

namespace flyball {

inline constexpr std::string_view kUnidentifiedPrefix = "GPU-unidentified-";

/// Numbered from 1.
inline DeviceId unidentified_device(std::size_t number) {
  return DeviceId::of(std::string(kUnidentifiedPrefix) + std::to_string(number));
}

inline bool is_unidentified(const DeviceId& device) { return device.text().starts_with(kUnidentifiedPrefix); }

}  // namespace flyball
