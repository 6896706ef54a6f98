#include "fakegpu/boards.h"

#include <fmt/format.h>

namespace flyball::fakegpu {

namespace {

// PCI identities as pci.ids lists them; architectures as NVML numbers them.
constexpr BoardKind kBoards[] = {
    {"a100-sxm4-80gb", 7, 8, 0, 0x20b210de, 0x147f10de}, {"a100-sxm4-80gb-500w", 7, 8, 0, 0x20b210de, 0x147f10de},
    {"a100-pcie-80gb", 7, 8, 0, 0x20b510de, 0x153310de}, {"h100-sxm5-80gb", 9, 9, 0, 0x233010de, 0x16c110de},
    {"v100-pcie-16gb", 5, 7, 0, 0x1db410de, 0x121410de},
};

}  // namespace

Result<BoardKind> board_kind(std::string_view preset) {
  for (const BoardKind& kind : kBoards) {
    if (kind.preset == preset) return kind;
  }
  return fail(ErrorCode::input, fmt::format("there is no board '{}'", preset.substr(0, 60)), "--preset");
}

}  // namespace flyball::fakegpu
