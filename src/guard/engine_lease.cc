// Leases: who may have one, how long it lives, what its end does.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "core/unidentified.h"
#include "guard/engine.h"

namespace flyball::guard {
namespace {

constexpr std::size_t kMostLeases = 256;
constexpr std::size_t kMostDevices = 1024;
constexpr std::size_t kLongestPurpose = 200;

std::set<DeviceId> as_set(const std::vector<DeviceId>& devices) { return {devices.begin(), devices.end()}; }

}  // namespace

Result<> Engine::refresh_devices() {
  FLYBALL_ASSIGN(const auto devices, parts_.driver.devices());
  listed_ = true;
  for (const DeviceInfo& info : devices) {
    Board& board = boards_[info.id];
    board.id = info.id;
    board.state = info.state;
    board.shared = info.shared;
  }
  // A board that the driver lists no more is lost, not gone: it may draw power still. A name that only stood for one
  // is gone when the board has told its own.
  for (auto at = boards_.begin(); at != boards_.end();) {
    auto& [id, board] = *at;
    const bool listed =
        std::any_of(devices.begin(), devices.end(), [&id = id](const auto& info) { return info.id == id; });
    if (!listed) board.state = DeviceState::lost;
    const bool leased =
        std::any_of(board.slots.begin(), board.slots.end(), [](const auto& s) { return s.has_value(); });
    at = !listed && is_unidentified(id) && !board.hold && !leased ? boards_.erase(at) : std::next(at);
  }
  return {};
}

Result<> Engine::admit_lease(const LeaseRequest& request) {
  if (request.devices.empty() || request.devices.size() > kMostDevices) {
    return fail(ErrorCode::input,
                fmt::format("a lease is for 1 to {} devices, not {}", kMostDevices, request.devices.size()));
  }
  if (!(request.time_to_live > Seconds(0)) || request.time_to_live > config_.longest_lease) {
    return fail(ErrorCode::input, "a lease lives above 0 and up to " + format(config_.longest_lease) + ", not " +
                                      format(request.time_to_live));
  }
  if (request.purpose.size() > kLongestPurpose || !is_printable_ascii(request.purpose)) {
    return fail(ErrorCode::input,
                fmt::format("the purpose is one line of up to {} printable characters", kLongestPurpose));
  }
  if (leases_.size() >= kMostLeases) {
    return fail(ErrorCode::refused, fmt::format("{} leases are open, the most that are allowed", kMostLeases));
  }
  if (journal_->broken()) {
    if (const auto mended = journal_->mend(); !mended) {
      return fail(ErrorCode::refused, "the journal cannot be written (" + mended.error().message() + ")", {},
                  "existing leases stay; free space, then ask again");
    }
  }
  if (audit_broken_) {
    audit("probe", {}, 0, "", "the audit log was not writable");
    if (audit_broken_)
      return fail(ErrorCode::refused, "the audit log cannot be written", {}, "free space, then ask again");
  }
  std::set<DeviceId> seen;
  for (const DeviceId& device : request.devices) {
    const auto found = boards_.find(device);
    if (found == boards_.end()) {
      return fail(ErrorCode::input, "no such device", device.text(), "`flyball status` lists the devices by UUID");
    }
    if (!seen.insert(device).second) return fail(ErrorCode::input, "named twice in one lease", device.text());
    if (found->second.shared && request.authority != Authority::site) {
      return fail(ErrorCode::refused, "this board is shared (MIG or several tenants): only the site may limit it",
                  device.text());
    }
    if (const auto& slot = found->second.slots[static_cast<std::size_t>(request.authority)]) {
      return fail(ErrorCode::refused,
                  fmt::format("already leased by {} lease {}", to_string(request.authority), slot->lease),
                  device.text(), "release that lease first");
    }
  }
  return {};
}

Result<LeaseId> Engine::acquire(const LeaseRequest& request) {
  FLYBALL_TRY(refresh_devices());
  auto admitted = admit_lease(request);
  const LeaseKind kind = budget_ ? LeaseKind::budget : request.kind;
  if (admitted && budget_) {
    for (auto& [id, board] : boards_) (void)look(board);
    admitted = budget_->feasible(draws(nullptr, Milliwatts(0)), parts_.clock.now());
  }
  if (!admitted) {
    note_refused(request, admitted.error().message());
    return fail(admitted.error());
  }
  const LeaseId id = next_lease_++;
  audit("acquire", request.devices.front(), id, std::string(to_string(kind)),
        fmt::format("{} lease on {} device(s) for {}{}: {}", to_string(request.authority), request.devices.size(),
                    format(request.time_to_live), request.sticky ? ", sticky" : "", request.purpose));
  leases_[id] = Lease{request, kind, parts_.clock.now() + request.time_to_live, {}};
  for (const DeviceId& device : request.devices) {
    boards_[device].slots[static_cast<std::size_t>(request.authority)] = Slot{id, kind, {}};
  }
  return id;
}

void Engine::note_refused(const LeaseRequest& request, const std::string& why) {
  audit("acquire", request.devices.empty() ? DeviceId() : request.devices.front(), 0, "refused", why);
}

Engine::Lease* Engine::find_lease(LeaseId lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return nullptr;
  // A lease that is over is over, also when the tick that says so comes late.
  if (!found->second.request.sticky && parts_.clock.now() > found->second.deadline) {
    expire(parts_.clock.now());
    return nullptr;
  }
  return &found->second;
}

namespace {

auto no_such_lease(LeaseId lease) {
  return fail(ErrorCode::failed, fmt::format("lease {} is over or was never given", lease), {}, "acquire a new one");
}

}  // namespace

Result<> Engine::renew(LeaseId lease) {
  Lease* found = find_lease(lease);
  if (found == nullptr) return no_such_lease(lease);
  found->deadline = parts_.clock.now() + found->request.time_to_live;
  found->forgiven = Seconds(0);
  return {};
}

Result<std::vector<WriteOutcome>> Engine::write(LeaseId lease, const std::vector<WriteRequest>& writes) {
  Lease* of = find_lease(lease);
  if (of == nullptr) return no_such_lease(lease);
  of->deadline = parts_.clock.now() + of->request.time_to_live;
  of->forgiven = Seconds(0);
  if (writes.empty() || writes.size() > kMostDevices) {
    return fail(ErrorCode::input, fmt::format("1 to {} writes at a time, not {}", kMostDevices, writes.size()));
  }

  std::vector<WriteOutcome> outcomes(writes.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    WriteOutcome& outcome = outcomes[i];
    outcome.device = writes[i].device;
    outcome.asked = writes[i].power_limit.value_or(Milliwatts(0));
    const auto board = boards_.find(writes[i].device);
    const bool leased = board != boards_.end() && std::any_of(board->second.slots.begin(), board->second.slots.end(),
                                                              [&](const auto& s) { return s && s->lease == lease; });
    const auto stored = leased ? store_wish(board->second, lease, *of, writes[i])
                               : Result<>(fail(ErrorCode::refused, fmt::format("not in lease {}", lease)));
    if (stored) {
      order.push_back(i);
    } else {
      outcome.reason = stored.error().message();
      audit("write", outcome.device, lease, "refused", outcome.reason);
    }
  }
  // Decreases first, so that an increase never uses room that is not there yet.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto rise = [&](std::size_t i) {
      const Board& board = boards_.at(writes[i].device);
      return writes[i].power_limit ? *writes[i].power_limit - present(board) : Milliwatts(0);
    };
    return rise(a) < rise(b);
  });
  for (const std::size_t i : order) {
    const Milliwatts asked = outcomes[i].asked;
    outcomes[i] = drive(boards_.at(writes[i].device));
    outcomes[i].asked = asked;
  }
  return outcomes;
}

/// Takes a lease off its boards, and says which these are. They are given back when all leases that are over are off:
/// a wish of one of them must not raise a board for another.
std::vector<DeviceId> Engine::detach(LeaseId id, std::string_view why) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return {};
  const Lease lease = found->second;
  leases_.erase(found);
  audit("end", lease.request.devices.front(), id, std::string(to_string(lease.kind)), std::string(why));
  for (const DeviceId& device : lease.request.devices) {
    Board& board = boards_.at(device);
    auto& slot = board.slots[static_cast<std::size_t>(lease.request.authority)];
    const bool asked = slot && slot->wish.limit.has_value();
    slot.reset();
    board.retry = Retry{};
    board.yielded = false;
    if (!board.hold) continue;
    std::erase_if(board.hold->sticky, [&](const StickyWish& wish) { return wish.lease == id; });
    if (asked && lease.kind == LeaseKind::budget && !owner_stays(board)) park(board);
  }
  return lease.request.devices;
}

std::vector<RestoreOutcome> Engine::end_leases(const std::vector<LeaseId>& ids, std::string_view why) {
  std::set<DeviceId> devices;
  for (const LeaseId id : ids) devices.merge(as_set(detach(id, why)));
  std::vector<RestoreOutcome> outcomes;
  outcomes.reserve(devices.size());
  for (const DeviceId& device : devices) outcomes.push_back(give_back(boards_.at(device), false));
  return outcomes;
}

Result<std::vector<RestoreOutcome>> Engine::release(LeaseId lease) {
  if (find_lease(lease) == nullptr) return no_such_lease(lease);
  return end_leases({lease}, "released");
}

void Engine::client_gone(LeaseId lease, const std::string& why) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.request.sticky) return;
  end_leases({lease}, why);
}

void Engine::forgive(Seconds busy) {
  constexpr Seconds kWorthIt{1};
  constexpr Seconds kMost{5};  // lease + 5 s is promised to whoever relies on the restore
  if (busy < kWorthIt) return;
  for (auto& [id, lease] : leases_) {
    const Seconds given = std::min(busy, kMost - lease.forgiven);
    lease.forgiven += given;
    lease.deadline = lease.deadline + given;
  }
}

void Engine::expire(MonoTime now) {
  std::vector<LeaseId> over;
  for (const auto& [id, lease] : leases_) {
    if (!lease.request.sticky && now > lease.deadline) over.push_back(id);
  }
  counters_.leases_expired += over.size();
  if (!over.empty()) end_leases(over, "expired: not renewed in time");
}

}  // namespace flyball::guard
