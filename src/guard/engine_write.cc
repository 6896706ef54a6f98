// From a wish to a verified limit: clamping, waiting, journaling, sending, reading back.

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "guard/engine.h"

namespace flyball::guard {
namespace {

constexpr int kMostTries = 8;  // of one wish; with doubling back-off this is about two minutes

Seconds back_off(const EngineConfig& config, int count) {
  const double factor = static_cast<double>(1u << std::min(count, 20));
  return std::min(config.retry_first * factor, config.retry_longest);
}

}  // namespace

Result<> Engine::store_wish(Board& board, LeaseId lease, const Lease& of, const WriteRequest& write) {
  Slot& slot = *board.slots[static_cast<std::size_t>(of.request.authority)];
  if (!write.power_limit && !write.locked_clocks && !write.unlock_clocks)
    return fail(ErrorCode::input, "neither a limit nor clocks are asked for");
  if (write.locked_clocks && write.unlock_clocks)
    return fail(ErrorCode::input, "clocks are to be locked and unlocked at once");
  if (write.power_limit && !is_plausible(*write.power_limit)) {
    return fail(ErrorCode::input, fmt::format("{} mW is no power limit", write.power_limit->value()));
  }
  if (write.locked_clocks) {
    const ClockRange& range = *write.locked_clocks;
    if (!(range.low > Hertz(0)) || !(range.low <= range.high) || !range.high.finite()) {
      return fail(ErrorCode::input, "the clock range is empty or not positive");
    }
    if (!config_.policy(board.id).clocks_unlocked) {
      return fail(ErrorCode::refused, "locked clocks cannot be read back, so a restore would not know what to restore",
                  {}, "declare in the guard's configuration that this board's clocks are unlocked");
    }
  }
  if (slot.wish.limit != write.power_limit || slot.wish.clocks != write.locked_clocks) board.tries = 0;
  if (write.power_limit) slot.wish.limit = write.power_limit;
  if (write.locked_clocks) slot.wish.clocks = write.locked_clocks;
  if (write.unlock_clocks) slot.wish.clocks.reset();
  // The owner of the budget, or a higher one, is back.
  if (board.hold && board.hold->parked && of.kind == LeaseKind::budget && of.request.authority >= board.hold->owner) {
    board.hold->parked = false;
    board.stranger.reset();
  }
  if (of.request.sticky && board.hold) {
    std::erase_if(board.hold->sticky, [&](const StickyWish& wish) { return wish.lease == lease; });
    board.hold->sticky.push_back({lease, of.request.authority, slot.wish.limit});
  }
  return {};
}

/// The lowest of all wishes, each capped by what its lease may ask for, and of the resting limit of a parked board.
std::optional<Milliwatts> Engine::goal(const Board& board) const {
  std::optional<Milliwatts> lowest;
  const auto found = board.hold ? board.hold->found.limit() : std::optional(present(board));
  for (std::size_t authority = 0; authority < board.slots.size(); ++authority) {
    const auto& slot = board.slots[authority];
    if (!slot || !slot->wish.limit) continue;
    Milliwatts wish = *slot->wish.limit;
    // Saving means lowering, and a job may only lower: both stop at what was found.
    const bool only_lower = slot->kind == LeaseKind::saving || static_cast<Authority>(authority) == Authority::job;
    if (only_lower && found) wish = std::min(wish, *found);
    lowest = lowest ? std::min(*lowest, wish) : wish;
  }
  if (board.hold && board.hold->parked) {
    if (const auto rest = board.hold->resting_limit()) lowest = lowest ? std::min(*lowest, *rest) : *rest;
  }
  return lowest;
}

WriteOutcome Engine::drive(Board& board) {
  WriteOutcome outcome;
  outcome.device = board.id;
  board.pending = false;
  const MonoTime now = parts_.clock.now();
  const auto give = [&](WriteState state, std::string reason) {
    outcome.state = state;
    outcome.reason = std::move(reason);
    outcome.enforced = board.limits.enforced;
    if (state == WriteState::deferred || state == WriteState::failed) board.pending = true;
    return outcome;
  };
  if (now < board.retry.next) {
    return give(WriteState::failed, board.retry.reason + "; next try in " + format(board.retry.next - now));
  }
  board.watch_until.reset();
  if (const auto seen = look(board); !seen) {
    failed(board, seen.error().message());
    return give(WriteState::failed, board.retry.reason);
  }
  if (!epoch_) {
    failed(board, "which loading of the driver this is cannot be told");
    return give(WriteState::failed, board.retry.reason);
  }
  if (const auto known = reconcile(board); !known) {
    failed(board, known.error().message());
    return give(WriteState::failed, board.retry.reason);
  }
  const Sent clocks = apply_clocks(board);
  const bool settled = clocks.state == WriteState::unchanged || clocks.state == WriteState::applied;
  if (!settled || (clocks.state == WriteState::applied && !goal(board))) return give(clocks.state, clocks.reason);
  const auto range = allowed_range(board.id, config_.policy(board.id), board.limits);
  if (!range) return give(WriteState::refused, range.error().message());
  const auto wanted = goal(board);
  if (!wanted) return give(WriteState::unchanged, "nothing is asked for");
  // Coming up to the site's floor is not for us: a board found below it stays there unless someone asks for more.
  const Milliwatts target = *wanted < range->low ? std::min(range->low, present(board)) : range->clamp(*wanted);
  outcome.accepted = target;
  Sent sent = advance(board, target);
  // A limit that stays does not hide that clocks were written.
  if (sent.state == WriteState::unchanged && clocks.state == WriteState::applied) sent = clocks;
  if (outcome.accepted != *wanted && sent.reason.empty()) sent.reason = "clamped to the allowed range";
  return give(sent.state, sent.reason);
}

std::optional<std::string> Engine::must_wait(const Board& board, Milliwatts now_at, Milliwatts target) const {
  const MonoTime now = parts_.clock.now();
  const bool budget_decrease = target < now_at && board.under_budget();
  if (board.stranger && target < now_at && now < board.next_rewrite) {
    return fmt::format("{} set {}; written again in {}", to_string(board.drift), format(*board.stranger),
                       format(board.next_rewrite - now));
  }
  if (board.written_at && now - *board.written_at < config_.minimum_dwell && !budget_decrease) {
    return "written " + format(now - *board.written_at) + " ago; the dwell is " + format(config_.minimum_dwell);
  }
  return std::nullopt;
}

/// Why an increase to `next` must not be sent now; `refused` when it must not be sent at all.
std::optional<std::string> Engine::must_not_raise(const Board& board, Milliwatts next, bool& refused) const {
  if (board.external_limit) {
    return "someone outside holds this board at " + format(*board.external_limit) + "; raised when that is gone";
  }
  if (board.stranger) {
    return "someone else set this board to " + format(*board.stranger) + "; a new lease may raise it";
  }
  for (const auto& slot : board.slots) {
    if (!slot || !slot->binds_budget()) continue;
    for (const DeviceId& other : leases_.at(slot->lease).request.devices) {
      const Board& sibling = boards_.at(other);
      const auto to = sibling.id == board.id ? std::nullopt : goal(sibling);
      if (!to || !sibling.read_at || (budget_ && is_silent(sibling))) continue;  // counted at its maximum
      const auto range = allowed_range(sibling.id, config_.policy(sibling.id), sibling.limits);
      const Milliwatts lowest = range ? range->clamp(*to) : *to;
      if (present(sibling) > lowest + config_.rounding) return "waits for the decrease of " + other.text();
    }
  }
  if (budget_) {
    if (!listed_) return "the driver has not listed its boards yet, and all of them are in the budget";
    if (const auto fits = budget_->admits(draws(&board, next), parts_.clock.now()); !fits) {
      refused = true;
      return fits.error().message();
    }
  }
  return std::nullopt;
}

Engine::Sent Engine::advance(Board& board, Milliwatts target) {
  const Milliwatts from = present(board);
  const bool budget = board.under_budget();
  const Milliwatts nearness = target < from && budget ? config_.rounding : config_.dead_band;
  if (same_limit(from, target, nearness)) {
    worked(board);
    return {WriteState::unchanged, ""};
  }
  if (board.yielded) return {WriteState::failed, "another program keeps setting this board's limit; yielded to it"};
  if (board.tries >= kMostTries) return {WriteState::failed, "given up until something else is asked for"};
  if (auto wait = must_wait(board, from, target)) return {WriteState::deferred, *std::move(wait)};
  Milliwatts next = target;
  if (target < from && !budget) next = std::max(target, from - config_.largest_step_down);
  if (target > from) {
    next = std::min(target, from + config_.largest_step_up);
    bool refused = false;
    if (auto why = must_not_raise(board, next, refused)) {
      if (!refused) return {WriteState::deferred, *std::move(why)};
      // Refused for good: what is in force becomes the wish, so that the limit does not rise later by itself.
      for (auto& slot : board.slots) {
        if (slot && slot->wish.limit) slot->wish.limit = std::min(*slot->wish.limit, from);
      }
      audit("write", board.id, 0, "refused", *why);
      return {WriteState::refused, *std::move(why)};
    }
  }
  if (board.stranger && next < from && !may_rewrite(board)) {
    return {WriteState::failed, "another program keeps setting this board's limit; yielded to it"};
  }
  Sent sent = send(board, next, budget && next < from);
  if (sent.state == WriteState::applied && next != target) {
    return {WriteState::deferred, "on the way: " + format(next) + " of " + format(target)};
  }
  return sent;
}

/// Writing over a stranger's limit: a few times with doubling back-off, never a fight.
bool Engine::may_rewrite(Board& board) {
  const bool budget = board.under_budget();
  const bool enough = board.rewrites >= config_.drift_rewrites;
  if (enough && !budget) {
    board.yielded = true;
    audit("drift", board.id, 0, "yielded", fmt::format("after {} rewrites", board.rewrites));
    return false;
  }
  const double factor = static_cast<double>(2u << std::min(board.rewrites, 20));
  board.next_rewrite = parts_.clock.now() + (enough ? config_.drift_budget_pause : config_.verify_period * factor);
  ++board.rewrites;
  ++counters_.drift_rewrites;
  return true;
}

Result<> Engine::prepare_hold(Board& board, Milliwatts value, bool may_go_unjournaled) {
  bool budget = false;
  Authority owner = Authority::job;
  for (std::size_t authority = 0; authority < board.slots.size(); ++authority) {
    const auto& slot = board.slots[authority];
    if (!slot || !slot->binds_budget()) continue;
    budget = true;
    owner = std::max(owner, static_cast<Authority>(authority));
  }
  const bool first = !board.hold;
  if (first) {
    // What will be restored is read twice: one garbled answer must not become the limit that is given back.
    const Milliwatts once = present(board);
    FLYBALL_TRY(look(board));
    if (present(board) != once) {
      return fail(ErrorCode::failed, "two reads of the limit disagree: " + format(once) + ", " + format(present(board)),
                  board.id.text());
    }
    if (!is_known(board.limits.enforced)) {
      return fail(ErrorCode::unsupported, "the enforced limit cannot be read, so no write could be verified",
                  board.id.text(), "this board is observed only");
    }
    Hold hold;
    hold.device = board.id;
    hold.found = snapshot_of(board, "");
    const auto range = board_range(board.id, board.limits);
    if (!range || !range->contains(*hold.found.limit())) {
      return fail(ErrorCode::unsupported, "the limit found is outside the board's own range: one of them is garbage",
                  board.id.text());
    }
    board.hold = std::move(hold);
  }
  Hold& hold = *board.hold;
  const bool becomes_budget = budget && hold.kind != LeaseKind::budget;
  if (budget) {
    hold.kind = LeaseKind::budget;
    hold.owner = std::max(hold.owner, owner);
    hold.safe_cap = safe_cap(board);
  }
  for (std::size_t authority = 0; authority < board.slots.size(); ++authority) {
    const auto& slot = board.slots[authority];
    if (!slot || !leases_.at(slot->lease).request.sticky) continue;
    std::erase_if(hold.sticky, [&](const StickyWish& wish) { return wish.lease == slot->lease; });
    hold.sticky.push_back({slot->lease, static_cast<Authority>(authority), slot->wish.limit});
  }
  const bool known = std::find(hold.intents.begin(), hold.intents.end(), value) != hold.intents.end();
  hold.add_intent(value);
  // Without power no limit of ours survives, so only what a later boot must know has to reach the disk.
  const bool must_reach_disk = first || becomes_budget;
  const auto saved = save(board, must_reach_disk ? Durability::survives_power_cut : Durability::survives_crash);
  // A circuit does not wait for a disk, but what would be given back must be in the journal, whatever is at stake.
  if (saved || (may_go_unjournaled && board.snapshot_kept)) return {};
  if (!known) std::erase(hold.intents, value);
  drop_unwritten(board, first);
  return fail(ErrorCode::refused, "not written, for the journal cannot be: " + saved.error().message(),
              board.id.text());
}

/// A write that the journal would not take did not happen, so no later journal may say that it was meant.
void Engine::drop_unwritten(Board& board, bool first) {
  if (!first) {
    (void)journal_->save(*board.hold, Durability::survives_crash);
    return;
  }
  (void)journal_->close(board.id, Durability::survives_crash);
  board.hold.reset();
}

Engine::Sent Engine::send(Board& board, Milliwatts value, bool may_go_unjournaled) {
  const Milliwatts before = present(board);
  const bool first = !board.hold;
  // An earlier call with this very value may still be stuck: its landing must be known for ours then, too.
  const bool stuck = board.hold && std::find(board.hold->intents.begin(), board.hold->intents.end(), value) !=
                                       board.hold->intents.end();
  if (const auto ready = prepare_hold(board, value, may_go_unjournaled); !ready) {
    return {WriteState::refused, ready.error().message()};
  }
  if (first) {
    audit("snapshot", board.id, 0, "",
          "found " + format(*board.hold->found.limit()) + ", last written by " +
              (board.hold->found.last_writer.empty() ? "someone unknown" : board.hold->found.last_writer));
  }
  ++counters_.writes;
  board.written_at = parts_.clock.now();
  const auto called = parts_.driver.set_power_limit(board.id, value);
  Sent sent = judge(board, value, before, called);
  const bool landed = called && board.hold->accepted && same_limit(*board.hold->accepted, value, config_.rounding);
  if (landed && !stuck) std::erase(board.hold->intents, value);
  audit("write", board.id, 0, std::string(to_string(sent.state)),
        fmt::format("{} to {}{}{}", format(before), format(value), sent.reason.empty() ? "" : ": ", sent.reason));
  if (sent.state == WriteState::failed) {
    ++counters_.writes_failed;
    ++board.tries;
    failed(board, sent.reason);
  } else {
    board.tries = 0;
    worked(board);
  }
  return sent;
}

/// Reads back what a call did; the call's own word counts for nothing but the message.
Engine::Sent Engine::judge(Board& board, Milliwatts value, Milliwatts before, const Result<>& called) {
  const auto seen = look(board);
  if (!seen) {
    return {WriteState::failed,
            called ? "written, but it cannot be read back: " + seen.error().message() : called.error().message()};
  }
  Hold& hold = *board.hold;
  const Milliwatts shown = present(board);
  if (!same_limit(shown, value, config_.rounding)) {
    if (!called) return {WriteState::failed, called.error().message()};
    if (!same_limit(shown, before, config_.rounding)) {  // what our call did instead is ours to undo
      hold.add_intent(shown);
      (void)save(board, Durability::survives_crash);
    }
    return {WriteState::failed, fmt::format("the driver accepted {} and then shows {}", format(value), format(shown))};
  }
  hold.accepted = shown;
  board.shown_before = shown;
  board.stranger.reset();
  see_ceiling(board);
  if (!is_known(board.limits.enforced)) return {WriteState::failed, "the enforced limit cannot be read any more"};
  if (board.limits.enforced.value > value + config_.rounding) {
    return {WriteState::failed,
            fmt::format("{} is asked for, but {} is enforced", format(value), format(board.limits.enforced.value))};
  }
  if (board.external_limit)
    return {WriteState::applied, "someone outside holds it lower, at " + format(*board.external_limit)};
  return {WriteState::applied, ""};
}

/// A lock cannot be read back, but that a board runs above it can. Seen three times, for a clock takes a moment to
/// fall.
bool Engine::escapes_lock(Board& board) {
  constexpr Hertz kTolerance{20e6};  // clocks come in steps of 15 MHz
  constexpr int kBelieved = 3;
  const auto reading = parts_.driver.read(board.id);
  const bool above = reading && reading->sm_clock && *reading->sm_clock > board.locked->high + kTolerance;
  board.above_lock = above ? board.above_lock + 1 : 0;
  if (board.above_lock != kBelieved) return board.above_lock > kBelieved;
  board.drift = Drift::foreign_writer;
  board.last_drift = parts_.clock.now();
  ++counters_.drift_seen;
  audit("drift", board.id, 0, std::string(to_string(board.drift)),
        "locked to " + format(board.locked->high) + ", runs at " + format(*reading->sm_clock));
  return true;
}

Engine::Sent Engine::apply_clocks(Board& board) {
  std::optional<ClockRange> wanted;
  for (const auto& slot : board.slots) {  // the highest authority's wish is the last one
    if (slot && slot->wish.clocks) wanted = slot->wish.clocks;
  }
  if (!wanted) {  // whoever wanted them locked does not any more
    if (!board.hold || !board.hold->clocks_locked) return {WriteState::unchanged, ""};
    std::string reason;
    ++counters_.writes;
    if (give_back_clocks(board, reason)) return {WriteState::applied, "the clocks are free again"};
    ++counters_.writes_failed;
    failed(board, reason);
    return {WriteState::failed, reason};
  }
  if (board.locked == wanted) {
    if (!escapes_lock(board)) return {WriteState::unchanged, ""};
    if (board.yielded)
      return {WriteState::failed, "another program keeps unlocking this board's clocks; yielded to it"};
    if (parts_.clock.now() < board.next_rewrite) return {WriteState::deferred, "above its lock; locked again later"};
    if (!may_rewrite(board)) return {WriteState::failed, "another program keeps unlocking this board's clocks"};
  }
  if (board.written_at && parts_.clock.now() - *board.written_at < config_.minimum_dwell) {
    return {WriteState::deferred, "the dwell is " + format(config_.minimum_dwell)};
  }
  const bool first = !board.hold;
  if (first) {
    Hold hold;
    hold.device = board.id;
    hold.found = snapshot_of(board, "");
    board.hold = std::move(hold);
  }
  if (!board.hold->clocks_locked) {
    board.hold->clocks_locked = true;
    if (const auto saved = save(board, Durability::survives_power_cut); !saved) {
      board.hold->clocks_locked = false;
      drop_unwritten(board, first);
      return {WriteState::refused, "not written, for the journal cannot be: " + saved.error().message()};
    }
  }
  board.written_at = parts_.clock.now();
  ++counters_.writes;
  const auto called = parts_.driver.lock_clocks(board.id, *wanted);
  audit("lock_clocks", board.id, 0, called ? "accepted" : "failed",
        format(wanted->low) + " to " + format(wanted->high) + (called ? "" : ": " + called.error().message()));
  if (!called) {
    ++counters_.writes_failed;
    failed(board, called.error().message());
    return {WriteState::failed, called.error().message()};
  }
  board.locked = wanted;
  board.above_lock = 0;
  worked(board);
  return {WriteState::applied, "clocks locked to at most " + format(wanted->high) + "; a lock cannot be read back"};
}

void Engine::failed(Board& board, const std::string& reason) {
  board.retry.next = parts_.clock.now() + back_off(config_, board.retry.count);
  if (board.retry.count == 0 || board.retry.reason != reason) log::warning("guard", "{}: {}", board.id.text(), reason);
  ++board.retry.count;
  board.retry.reason = reason;
  board.pending = true;
}

void Engine::worked(Board& board) { board.retry = Retry{}; }

}  // namespace flyball::guard
