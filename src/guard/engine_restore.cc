// Giving back. A restore is compare-and-swap: it writes only over our own last limit. It is verified, counted, logged,
// and tried again until it works; one board's failure never keeps another's.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "guard/engine.h"

namespace flyball::guard {

/// What an earlier guard left: sticky wishes go on, budgets rest at their safe cap, everything else is given back.
void Engine::recover() {
  if (parts_.expect && !journal_->found().holds.empty()) {
    std::vector<DeviceId> devices;
    for (const auto& [device, hold] : journal_->found().holds) devices.push_back(device);
    parts_.expect(devices);
  }
  // A board that hangs can hold up the listing; nothing but a node budget, which must know all boards, waits for it.
  if (budget_) {
    if (const auto listed = refresh_devices(); !listed) {
      log::warning("guard", "the driver does not list its devices yet: {}", listed.error().message());
    }
  }
  for (const auto& [device, hold] : journal_->found().holds) {
    Board& board = boards_[device];
    board.id = device;
    board.hold = hold;
    board.snapshot_kept = true;
    for (const StickyWish& wish : hold.sticky) {
      Lease& lease = leases_[wish.lease];
      lease.kind = budget_ ? LeaseKind::budget : hold.kind;
      lease.request.kind = lease.kind;
      lease.request.authority = wish.authority;
      lease.request.devices.push_back(device);
      lease.request.sticky = true;
      lease.request.purpose = "kept over a restart of the guard";
      board.slots[static_cast<std::size_t>(wish.authority)] = Slot{wish.lease, lease.kind, {wish.power_limit, {}}};
    }
    audit("recover", device, 0, std::string(to_string(hold.kind)),
          "an earlier guard left " + (hold.accepted ? format(*hold.accepted) : std::string("an unfinished write")));
  }
  for (auto& [id, board] : boards_) {
    if (!board.hold) continue;
    if (board.hold->kind == LeaseKind::budget && !board.hold->parked && !owner_stays(board)) park(board);
    if (board.wished()) {
      drive(board);
    } else {
      give_back(board, false);
    }
  }
}

/// A budget lease of the owner's rank is still there and says where the board belongs.
bool Engine::owner_stays(const Board& board) const {
  for (std::size_t authority = 0; authority < board.slots.size(); ++authority) {
    const auto& slot = board.slots[authority];
    if (slot && slot->binds_budget() && static_cast<Authority>(authority) >= board.hold->owner) return true;
  }
  return false;
}

/// From now on the board rests at the lowest of what is in force, its safe cap and what was found: never upward.
void Engine::park(Board& board) {
  Hold& hold = *board.hold;
  const bool seen = look(board).has_value();
  const Milliwatts cap = config_.policy(board.id).safe_cap || seen ? safe_cap(board) : hold.safe_cap;
  hold.safe_cap = hold.safe_cap > Milliwatts(0) ? std::min(hold.safe_cap, cap) : cap;
  const bool readable = seen || hold.accepted;
  if (readable) hold.safe_cap = std::min(hold.safe_cap, seen ? present(board) : *hold.accepted);
  hold.parked = true;
  (void)save(board, Durability::survives_power_cut);
}

RestoreOutcome Engine::give_back(Board& board, bool upward) {
  RestoreOutcome outcome;
  outcome.device = board.id;
  outcome.now = board.limits.enforced;
  board.pending = false;
  if (!board.hold) {
    outcome.restored = true;
    outcome.reason = "nothing of ours is there";
    return outcome;
  }
  if (const auto found = board.hold->found.limit()) outcome.found = *found;
  if (board.wished()) {
    const auto driven = drive(board);
    outcome.restored = driven.state == WriteState::applied || driven.state == WriteState::unchanged;
    outcome.now = driven.enforced;
    outcome.reason = "another lease still holds it" + (driven.reason.empty() ? "" : ": " + driven.reason);
    return outcome;
  }
  if (parts_.clock.now() < board.retry.next) {
    board.pending = true;
    outcome.reason = board.retry.reason + "; tried again in " + format(board.retry.next - parts_.clock.now());
    return outcome;
  }
  std::string clocks;
  const bool clocks_back = give_back_clocks(board, clocks);
  give_back_power(board, upward, outcome);
  if (!clocks_back) {
    outcome.restored = false;
    outcome.reason += (outcome.reason.empty() ? "" : "; ") + clocks;
    if (board.hold) failed(board, outcome.reason);
  } else if (outcome.restored || outcome.left_to_other) {
    finish_restore(board, outcome, upward);
  }
  if (!outcome.restored && !outcome.left_to_other) {
    ++counters_.restores_failed;
    constexpr int kAlarm = 3;
    if (board.retry.count == kAlarm) log::error("guard", "{} is not given back: {}", board.id.text(), outcome.reason);
    audit("restore", board.id, 0, "failed", outcome.reason);
  }
  return outcome;
}

void Engine::give_back_power(Board& board, bool upward, RestoreOutcome& outcome) {
  auto known = look(board);
  if (known && board.hold) known = reconcile(board);
  outcome.now = board.limits.enforced;
  // Enforced above our request is the board's failure to obey; giving back is still right.
  if (!known && !(board.hold && board.drift == Drift::above_request && board.read_at == parts_.clock.now())) {
    failed(board, known.error().message());
    outcome.reason = known.error().message();
    return;
  }
  if (!board.hold) {
    outcome.left_to_other = true;
    outcome.reason = "the driver was loaded again since: closed unwritten";
    return;
  }
  const Hold& hold = *board.hold;
  const bool rests = hold.kind == LeaseKind::budget && !upward;
  auto target = rests ? hold.resting_limit() : hold.found.limit();
  const auto range = allowed_range(board.id, config_.policy(board.id), board.limits);
  if (rests && target && range)
    target = range->clamp(*target);  // found limits may be outside the site's range, ours not
  const Milliwatts shown = present(board);
  if (!rests && board.stranger && !same_limit(shown, outcome.found.value_or(Milliwatts(0)), config_.rounding)) {
    outcome.left_to_other = true;
    outcome.reason = "someone else set " + format(shown) + " since; it is theirs now";
    return;
  }
  if (!target || same_limit(shown, *target, config_.rounding) || (rests && shown < *target)) {
    outcome.restored = true;
    if (rests && shown < *target && !hold.accepted) outcome.left_to_other = true;
    return;
  }
  if (rests && !range) {  // what was found may be written back without knowing the range, a new value may not
    failed(board, range.error().message());
    outcome.reason = range.error().message();
    return;
  }
  if (*target > shown && budget_) {
    const auto fits = listed_ ? budget_->admits(draws(&board, *target), parts_.clock.now())
                              : Result<>(fail(ErrorCode::failed, "the driver has not listed its boards yet"));
    if (!fits) {
      outcome.reason = fits.error().message();
      board.pending = true;
      return;
    }
  }
  if (rests && board.stranger) {  // the same patience as while the lease lived
    if (parts_.clock.now() < board.next_rewrite || !may_rewrite(board)) {
      outcome.left_to_other = true;
      outcome.reason = "someone else set " + format(shown) + "; written again later";
      return;
    }
  }
  const Sent sent = send(board, *target, true);
  outcome.restored = sent.state == WriteState::applied;
  outcome.now = board.limits.enforced;
  outcome.reason = sent.reason;
}

bool Engine::give_back_clocks(Board& board, std::string& reason) {
  if (!board.hold->clocks_locked) return true;
  const auto reset = parts_.driver.reset_clocks(board.id);
  if (!reset) {
    reason = "clocks are not reset: " + reset.error().message();
    return false;
  }
  board.hold->clocks_locked = false;
  board.locked.reset();
  (void)save(board, Durability::survives_crash);
  audit("reset_clocks", board.id, 0, "accepted", "");
  return true;
}

void Engine::finish_restore(Board& board, RestoreOutcome& outcome, bool upward) {
  constexpr Seconds kStuckCall{60};  // a call given up may still land; none has been seen to after this long
  if (!board.hold) return;
  Hold& hold = *board.hold;
  worked(board);
  const std::string shown = format(present(board));
  const auto found = hold.found.limit();
  const auto rest = hold.resting_limit();
  const bool owes = !upward && found && rest && *rest < *found - config_.rounding;
  if (owes) {
    if (outcome.reason.empty()) outcome.reason = "rests at " + shown + " until the owner of the budget releases it";
    return;
  }
  if (!board.watch_until) {
    ++(outcome.left_to_other ? counters_.left_to_other : counters_.restores);
    if (outcome.reason.empty()) outcome.reason = "shows " + shown;
    audit("restore", board.id, 0, outcome.left_to_other ? "left_to_other" : "restored", outcome.reason);
  }
  const MonoTime now = parts_.clock.now();
  if (!hold.intents.empty()) {
    if (!board.watch_until) board.watch_until = now + kStuckCall;
    if (now < *board.watch_until) return;
  }
  forget(board);
}

/// Nothing is owed to this board any more.
void Engine::forget(Board& board) {
  if (const auto closed = journal_->close(board.id, Durability::survives_crash); !closed) {
    log::error("guard", "journal: {}", closed.error().message());
  }
  board.hold.reset();
  board.snapshot_kept = false;
  board.locked.reset();
  board.watch_until.reset();
  board.stranger.reset();
  board.external_limit.reset();
  board.pending = false;
}

Result<std::vector<RestoreOutcome>> Engine::restore_all(const std::string& reason) {
  std::set<DeviceId> concerned;
  for (const auto& [id, board] : boards_) {
    if (board.hold) concerned.insert(id);
  }
  const std::map<LeaseId, Lease> ended = std::move(leases_);
  leases_.clear();
  audit("restore_all", {}, 0, "", fmt::format("{} lease(s), {} board(s): {}", ended.size(), concerned.size(), reason));
  for (const auto& [id, lease] : ended) {
    for (const DeviceId& device : lease.request.devices) concerned.insert(device);
  }
  std::vector<RestoreOutcome> outcomes;
  for (const DeviceId& device : concerned) {
    Board& board = boards_.at(device);
    board.slots = {};
    board.retry = Retry{};
    board.yielded = false;
    if (board.hold) {
      board.hold->sticky.clear();
      if (board.hold->kind == LeaseKind::budget && !board.hold->parked) park(board);
    }
    outcomes.push_back(give_back(board, false));
  }
  return outcomes;
}

Result<std::vector<RestoreOutcome>> Engine::lift(Authority who, const std::vector<DeviceId>& devices) {
  (void)refresh_devices();
  std::vector<RestoreOutcome> outcomes;
  for (const DeviceId& device : devices) {
    RestoreOutcome outcome;
    outcome.device = device;
    const auto found = boards_.find(device);
    if (found == boards_.end()) {
      outcome.reason = "no such device";
    } else if (found->second.wished()) {
      outcome.reason = "still leased; release the lease first";
    } else if (found->second.hold && found->second.hold->owner > who) {
      outcome.reason = fmt::format("the budget belongs to the {}", to_string(found->second.hold->owner));
    } else {
      found->second.retry = Retry{};
      outcome = give_back(found->second, true);
    }
    audit("lift", device, 0, outcome.restored ? "restored" : "not", outcome.reason);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace flyball::guard
