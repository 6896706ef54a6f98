#pragma once
// Who a reading or a write is about. A GPU is its UUID, from end to end: an index means different boards to CUDA, to
// NVML and after the next boot.

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace flyball {

/// A device or meter by a name that stays: "GPU-5f1c…", "MIG-…", "node-17/ac", "pdu-3/outlet-4".
/// 1 to 96 printable ASCII characters without blanks, quotes or commas; bare numbers are refused.
class DeviceId {
 public:
  DeviceId() = default;
  static Result<DeviceId> parse(std::string_view text);
  /// For names that the program itself makes; malformed ones end the program.
  static DeviceId of(std::string_view text);

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  auto operator<=>(const DeviceId&) const = default;

 private:
  std::string text_;
};

enum class DeviceState {
  ok,
  lost,       ///< the driver says it is gone (Xid 79); its draw still counts until confirmed
  hung,       ///< a call into its driver did not come back
  not_ready,  ///< the driver is not loaded, or not yet
};
std::string_view to_string(DeviceState state);

struct DeviceInfo {
  DeviceId id;
  std::string name;     ///< "NVIDIA H100 80GB HBM3"
  std::string pci_bus;  ///< "00000000:1B:00.0"; empty if unknown
  DeviceState state = DeviceState::ok;
  bool shared = false;        ///< MIG or several tenants: power belongs to the whole board
  bool module_scope = false;  ///< the power reading covers more than the GPU (Grace Hopper)
};

}  // namespace flyball

template <>
struct std::hash<flyball::DeviceId> {
  std::size_t operator()(const flyball::DeviceId& id) const noexcept { return std::hash<std::string>()(id.text()); }
};
