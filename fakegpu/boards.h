#pragma once
// What a board says of itself, beside its physics.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace flyball::fakegpu {

struct BoardKind {
  std::string_view preset;     ///< of the twin
  std::uint32_t architecture;  ///< NVML_DEVICE_ARCH_*
  std::uint32_t compute_major;
  std::uint32_t compute_minor;
  std::uint32_t pci_device_id;  ///< device in the upper, vendor in the lower half
  std::uint32_t pci_subsystem_id;
};

/// By the name of the twin's GPU preset.
Result<BoardKind> board_kind(std::string_view preset);

}  // namespace flyball::fakegpu
