#include "device/nvml/nvml_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/text.h"
#include "core/unidentified.h"
#include "device/nvml/nvml_error.h"

namespace flyball::nvml {
namespace {

/// Text of a fixed buffer that a library filled; an unterminated one ends where the buffer does.
template <std::size_t N>
std::string text_of(const std::array<char, N>& buffer) {
  return std::string(buffer.begin(), std::find(buffer.begin(), buffer.end(), '\0'));
}

/// GA100 boards carry PCI device ids 0x20xx (A100, A30, A800; pci.ids database).
bool is_ga100(unsigned device_and_vendor) { return (device_and_vendor >> 24) == 0x20; }

/// Boards that share a module, and a power supply, with CPUs.
bool is_module_part(const NvmlApi& api, DeviceHandle handle, const std::string& name) {
  for (const char* part : {"GH200", "GB200", "GB300"}) {
    if (name.find(part) != std::string::npos) return true;
  }
  FieldValue module{};
  module.field = kFieldPowerInstant;
  module.scope = kScopeModule;
  return call(api.field_values, handle, 1, &module) == kSuccess && module.status == kSuccess;
}

void describe(const NvmlApi& api, Board& board) {
  std::array<char, kNameBytes> name{};
  if (call(api.name, board.handle, name.data(), kNameBytes) == kSuccess) board.info.name = text_of(name);
  PciInfo pci{};
  if (call(api.pci_info, board.handle, &pci) == kSuccess) {
    std::array<char, sizeof pci.bus_id> bus{};
    std::copy(std::begin(pci.bus_id), std::end(pci.bus_id), bus.begin());
    board.info.pci_bus = text_of(bus);
    board.is_ga100 = is_ga100(pci.device_and_vendor);
  }
  if (call(api.architecture, board.handle, &board.architecture) != kSuccess) {
    board.architecture = kArchitectureUnknown;
  }
  unsigned current = 0;
  unsigned pending = 0;
  board.info.shared = call(api.mig_mode, board.handle, &current, &pending) == kSuccess && current == kMigEnabled;
  board.info.module_scope = is_module_part(api, board.handle, board.info.name);
  // Names and ids come from a cache; a sensor shows whether the board still answers.
  unsigned celsius = 0;
  const bool gone = call(api.temperature, board.handle, kTemperatureGpu, &celsius) == kGpuIsLost;
  board.info.state = gone ? DeviceState::lost : DeviceState::ok;
}

}  // namespace

std::string Selection::text() const {
  switch (kind) {
    case Kind::all:
      return "all";
    case Kind::none:
      return "none";
    case Kind::index:
      return fmt::format("at:{}", index);
    case Kind::device:
      break;
  }
  return device.text();
}

Result<Selection> Selection::parse(std::string_view text) {
  if (text == "all") return Selection();
  if (text == "none") return Selection{Kind::none, 0, {}, {}};
  if (text.starts_with("at:")) {
    FLYBALL_ASSIGN(const std::int64_t index, parse_int(text.substr(3)));
    if (index < 0 || index >= kMaxBoards) return fail(ErrorCode::input, fmt::format("no board is at {}", index));
    return at(static_cast<unsigned>(index));
  }
  FLYBALL_ASSIGN(const DeviceId device, DeviceId::parse(text));
  return of(device);
}

Result<> NvmlSession::ready() {
  if (initialised_) return {};
  if (waiting_ && clock_.now() < next_try_) return fail(last_failure_);
  const Result<> opened = try_open();
  if (opened) {
    waiting_ = false;
    pause_ = kFirstRetry;
    if (was_open_) {
      ++reopened_;
      log::warning("nvml", "the driver is back (version {}), {} boards found again by UUID", version_, boards_.size());
    }
    was_open_ = true;
    return {};
  }
  close();
  last_failure_ = opened.error();
  next_try_ = clock_.now() + pause_;
  pause_ = std::min(pause_ * 2, kLastRetry);
  waiting_ = true;
  return fail(last_failure_);
}

Result<> NvmlSession::try_open() {
  FLYBALL_ASSIGN(library_, loader_());
  const NvmlApi& table = api();
  if (!table.init || !table.count || !table.handle_by_index || !table.uuid) {
    return fail(ErrorCode::unsupported, "the management library lacks calls that every version since 2012 has", {},
                "it is damaged or another library by that name: reinstall the driver");
  }
  const Return started = table.init();
  if (started != kSuccess) return fail(error_of(started, "open NVIDIA's management library", {}));
  initialised_ = true;
  std::array<char, kVersionBytes> version{};
  version_ = call(table.driver_version, version.data(), kVersionBytes) == kSuccess ? text_of(version) : "";
  return scan();
}

Result<> NvmlSession::scan() {
  unsigned count = 0;
  const Return counted = call(api().count, &count);
  if (counted != kSuccess) return fail(error_of(counted, "count the GPUs", {}));
  if (count > kMaxBoards) {
    return fail(ErrorCode::failed, fmt::format("the driver counts {} GPUs, more than {}", count, kMaxBoards));
  }
  for (Board& board : boards_) board.handle = nullptr;
  std::size_t nameless = 0;
  if (selection_.kind == Selection::Kind::device) {
    FLYBALL_TRY(open_selected());
  } else {
    FLYBALL_TRY(open_each(count, nameless));
  }
  std::size_t missing = 0;
  for (Board& board : boards_) {
    if (board.handle != nullptr) continue;
    ++missing;
    board.info.state = DeviceState::lost;
  }
  // A board that was dead before we started never told its UUID; it is listed all the same.
  for (; missing < nameless; ++missing) {
    Board board;
    board.info.id = unidentified_device(missing + 1);
    board.info.state = DeviceState::lost;
    boards_.push_back(std::move(board));
  }
  return {};
}

Result<> NvmlSession::open_each(unsigned count, std::size_t& nameless) {
  if (selection_.kind == Selection::Kind::none) {
    nameless = count;
    return {};
  }
  const bool one = selection_.kind == Selection::Kind::index;
  const unsigned end = one ? std::min(count, selection_.index + 1) : count;
  for (unsigned index = one ? selection_.index : 0; index < end; ++index) {
    DeviceHandle handle = nullptr;
    const Return found = call(api().handle_by_index, index, &handle);
    if (ends_session(found)) return fail(error_of(found, "open a GPU", {}));
    if (found == kNoPermission || found == kOperatingSystem) continue;  // belongs to another container
    if (found != kSuccess || !identify(handle)) ++nameless;
  }
  if (!one || boards_.empty() || is_unidentified(boards_.front().info.id)) return {};
  selection_.kind = Selection::Kind::device;
  selection_.device = boards_.front().info.id;
  return {};
}

Result<> NvmlSession::open_selected() {
  const DeviceId& id = selection_.device;
  const std::string address = selection_.pci_address ? selection_.pci_address(id) : std::string();
  DeviceHandle handle = nullptr;
  const Return found = address.empty() ? call(api().handle_by_uuid, id.text().c_str(), &handle)
                                       : call(api().handle_by_pci, address.c_str(), &handle);
  if (ends_session(found)) return fail(error_of(found, "open a GPU", {}));
  if (found == kSuccess && identify(handle)) return {};
  // Its name is known although it does not answer; one that the driver does not know is not there.
  if (found == kNotFound || find(id) != nullptr) return {};
  boards_.emplace_back();
  boards_.back().info.id = id;
  return {};
}

Result<> NvmlSession::identify(DeviceHandle handle) {
  std::array<char, kUuidBytes> text{};
  const Return named = call(api().uuid, handle, text.data(), kUuidBytes);
  if (named != kSuccess) return fail(error_of(named, "read a UUID", {}));
  FLYBALL_ASSIGN(const DeviceId id, DeviceId::parse(text_of(text)));
  Board* board = find(id);
  if (board == nullptr) {
    // The unidentified board may have been this one, back from a reset.
    std::erase_if(boards_, [](const Board& b) { return is_unidentified(b.info.id); });
    boards_.emplace_back();
    board = &boards_.back();
    board->info.id = id;
  }
  board->handle = handle;
  describe(api(), *board);
  return {};
}

void NvmlSession::lose() {
  close();
  waiting_ = false;
  pause_ = kFirstRetry;
}

void NvmlSession::close() {
  if (initialised_) call(api().shutdown);
  initialised_ = false;
  for (Board& board : boards_) {
    board.handle = nullptr;
    board.power_source = PowerSource::undecided;
    board.has_energy = false;
    board.has_doubt = false;
    board.info.state = DeviceState::not_ready;
  }
  library_.reset();
}

Board* NvmlSession::find(const DeviceId& id) {
  const auto it = std::find_if(boards_.begin(), boards_.end(), [&](const Board& b) { return b.info.id == id; });
  return it == boards_.end() ? nullptr : &*it;
}

}  // namespace flyball::nvml
