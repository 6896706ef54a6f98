#pragma once
// The library's life under a long-running process: absent, not ready yet, replaced, re-initialised. A session finds
// it, opens it, knows the boards by UUID, and does all of that again with growing pauses when it went away.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/device.h"
#include "device/nvml/nvml_api.h"

namespace flyball::nvml {

/// Pauses between attempts to open: doubled from the first to the last. A driver needs seconds to load, and an absent
/// one must cost nothing that can be measured.
constexpr Seconds kFirstRetry{1};
constexpr Seconds kLastRetry{60};
/// More boards than any one node carries (16 is the most sold today, HGX-2); a count above it is not believed.
constexpr unsigned kMaxBoards = 64;

/// Where `power_usage` belongs: the library gives one number whose meaning depends on the chip.
enum class PowerSource {
  undecided,
  fields,         ///< power_average and power_instant each from their own field
  usage_average,  ///< from the plain call, a mean over 1 s (Ampere except GA100, and later)
  usage_instant,  ///< from the plain call, instantaneous (GA100 and older)
};

/// One board as it is known over all sessions; the handle only lives for one.
struct Board {
  DeviceInfo info;
  DeviceHandle handle = nullptr;  ///< null: not enumerated by this session
  unsigned architecture = kArchitectureUnknown;
  bool is_ga100 = false;
  PowerSource power_source = PowerSource::undecided;
  bool write_denied = false;  ///< a setter was refused for lack of permission
  // Plausibility of the energy counter within one session, see believe_energy().
  bool has_energy = false;
  Joules last_energy;
  MonoTime last_energy_at;
  bool has_doubt = false;
  Joules doubtful_energy;
};

/// Which boards a session opens. The library opens a board when its handle is asked for, and only that one (nvml.h at
/// nvmlInit_v2, nvmlDeviceGetHandleByIndex): a board that hangs holds up only the sessions that open it.
struct Selection {
  enum class Kind {
    all,
    none,    ///< counts only: every board is unidentified
    index,   ///< one, by its place; by its UUID once that is known, for places change when the driver is loaded again
    device,  ///< one, by its UUID
  };
  Kind kind = Kind::all;
  unsigned index = 0;
  DeviceId device;
  /// Where the kernel's driver sees a board, without opening it; empty = unknown. A search by UUID may open others on
  /// its way (nvml.h at nvmlDeviceGetHandleByUUID), by the address it does not.
  std::function<std::string(const DeviceId&)> pci_address;

  static Selection of(const DeviceId& device) { return {Kind::device, 0, device, {}}; }
  static Selection at(unsigned index) { return {Kind::index, index, {}, {}}; }
  /// As text for a command line: "all", "none", "at:3" or a UUID.
  std::string text() const;
  static Result<Selection> parse(std::string_view text);
};

class NvmlSession {
 public:
  NvmlSession(NvmlLoader loader, Clock& clock, Selection selection = {})
      : loader_(std::move(loader)), clock_(clock), selection_(std::move(selection)) {}
  ~NvmlSession() { close(); }
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  /// Opens if it is not open and the pause is over; while the pause lasts, the last failure again.
  Result<> ready();
  /// Lists the boards again; those known before that are not found are lost, and stay in the list.
  Result<> scan();
  /// Forgets the session after a code that ends_session(); the next ready() tries at once.
  void lose();

  const NvmlApi& api() const { return library_->api(); }
  bool open() const { return library_ != nullptr; }
  std::vector<Board>& boards() { return boards_; }
  Board* find(const DeviceId& id);
  const std::string& driver_version() const { return version_; }
  /// How often the driver or library went away and came back under this process.
  unsigned reopened() const { return reopened_; }

 private:
  Result<> try_open();
  Result<> open_each(unsigned count, std::size_t& nameless);
  Result<> open_selected();
  Result<> identify(DeviceHandle handle);
  void close();

  NvmlLoader loader_;
  Clock& clock_;
  Selection selection_;
  std::unique_ptr<NvmlLibrary> library_;
  bool initialised_ = false;
  std::vector<Board> boards_;
  std::string version_;
  unsigned reopened_ = 0;
  bool was_open_ = false;
  Error last_failure_;
  Seconds pause_ = kFirstRetry;
  MonoTime next_try_;
  bool waiting_ = false;
};

/// An empty entry of the table answers like a library without the call.
template <class R, class... Args, class... Given>
Return call(const std::function<R(Args...)>& entry, Given... given) {
  return entry ? entry(given...) : kFunctionNotFound;
}

}  // namespace flyball::nvml
