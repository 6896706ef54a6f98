// Looking: what the boards hold now, whether it is ours, and who else has written.

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "guard/engine.h"

namespace flyball::guard {
namespace {

bool same_load(const DriverEpoch& a, const DriverEpoch& b) {
  const auto differ = [](const std::string& x, const std::string& y) { return !x.empty() && !y.empty() && x != y; };
  return !differ(a.boot_id, b.boot_id) && !differ(a.driver_load, b.driver_load);
}

bool is_factory_default(const PowerLimits& limits, Milliwatts rounding) {
  const Milliwatts shown = is_known(limits.requested) ? limits.requested.value : limits.enforced.value;
  return is_known(limits.factory_default) && same_limit(shown, limits.factory_default.value, rounding);
}

}  // namespace

/// Reads a board. What cannot be true is not believed: better no answer than a garbled one that gets restored.
Result<> Engine::look(Board& board) {
  auto epoch = parts_.driver.epoch();
  epoch_ = epoch ? std::optional(*std::move(epoch)) : std::nullopt;
  board.unseen = true;
  FLYBALL_ASSIGN(PowerLimits limits, parts_.driver.limits(board.id));
  for (auto* limit : {&limits.requested, &limits.enforced}) {
    if (limit->ok() && !is_plausible(limit->value)) *limit = Sample<Milliwatts>::absent(Status::garbage);
  }
  if (!limits.requested.ok() && !limits.enforced.ok()) {
    return fail(ErrorCode::failed, "neither the requested nor the enforced limit can be read", board.id.text());
  }
  const Milliwatts shown = limits.requested.ok() ? limits.requested.value : limits.enforced.value;
  if (const auto range = board_range(board.id, limits); range && board.hold) {
    if (shown < range->low - config_.rounding || shown > range->high + config_.rounding) {
      return fail(ErrorCode::failed,
                  fmt::format("a limit of {} outside the board's own range ({} to {})", format(shown),
                              format(range->low), format(range->high)),
                  board.id.text());
    }
  }
  board.shown_before = board.read_at ? present(board) : Milliwatts(0);
  board.limits = limits;
  board.read_at = parts_.clock.now();
  board.unseen = false;
  if (is_known(limits.maximum)) board.maximum = limits.maximum.value;
  return {};
}

Snapshot Engine::snapshot_of(const Board& board, std::string last_writer) const {
  Snapshot found;
  found.requested = board.limits.requested;
  found.enforced = board.limits.enforced;
  found.persistence = board.limits.persistence;
  found.epoch = epoch_.value_or(DriverEpoch{});
  if (last_writer.empty() && is_factory_default(board.limits, Milliwatts(0))) last_writer = "factory default";
  found.last_writer = std::move(last_writer);
  found.taken = parts_.clock.wall();
  return found;
}

Result<> Engine::save(Board& board, Durability durability) {
  auto saved = journal_->save(*board.hold, durability);
  if (saved) board.snapshot_kept = true;
  if (!saved) log::error("guard", "journal: {}", saved.error().message());
  return saved;
}

/// Brings what we know of a board in line with what it shows (as last looked at).
Result<> Engine::reconcile(Board& board) {
  if (!board.hold) return {};
  if (epoch_ && !same_load(board.hold->found.epoch, *epoch_)) reloaded(board, *epoch_);
  if (!board.hold) return {};
  Hold& hold = *board.hold;
  const Milliwatts shown = present(board);
  if (hold.is_ours(shown, config_.rounding)) {
    if (!hold.accepted || !same_limit(*hold.accepted, shown, config_.rounding)) hold.accepted = shown;
    board.stranger.reset();
    board.shown_before = shown;
    see_ceiling(board);
    if (board.drift != Drift::none && parts_.clock.now() - board.last_drift > config_.drift_quiet) {
      board.drift = Drift::none;
      board.rewrites = 0;
    }
    if (is_known(board.limits.enforced) && board.limits.enforced.value > *hold.accepted + config_.rounding) {
      board.drift = Drift::above_request;
      board.last_drift = parts_.clock.now();
      return fail(ErrorCode::failed,
                  fmt::format("{} is asked for, but {} is enforced", format(*hold.accepted),
                              format(board.limits.enforced.value)),
                  board.id.text());
    }
    return {};
  }
  const auto known = board.stranger ? board.stranger : (hold.accepted ? std::nullopt : hold.found.limit());
  if (known && same_limit(shown, *known, config_.rounding)) {
    if (board.yielded && parts_.clock.now() - board.last_drift > config_.drift_quiet) {
      board.yielded = false;
      board.rewrites = 0;
    }
    return {};
  }
  FLYBALL_TRY(look(board));  // a stranger is believed when seen twice
  if (!same_limit(present(board), shown, config_.rounding)) {
    return fail(ErrorCode::failed, "two reads of the limit disagree: " + format(shown) + ", " + format(present(board)),
                board.id.text());
  }
  found_other(board);
  return {};
}

/// Someone else wrote: theirs is what a restore would have to give back, so it becomes the snapshot. Under a budget the
/// lower of the two stays, for nobody but its owner may release upward.
void Engine::found_other(Board& board) {
  Hold& hold = *board.hold;
  const Milliwatts shown = present(board);
  const bool forgot = board.limits.persistence.ok() && !board.limits.persistence.value;
  const bool again = board.drift == Drift::factory_default && !board.stranger;  // just reloaded
  const bool factory = is_factory_default(board.limits, config_.rounding) && (forgot || again);
  board.drift = factory ? Drift::factory_default : Drift::foreign_writer;
  const auto before = hold.found.limit();
  if (hold.kind == LeaseKind::saving || !before || shown < *before) {
    const DriverEpoch taken_under = hold.found.epoch;
    hold.found = snapshot_of(board, factory ? "factory default" : "another program");
    if (!epoch_) hold.found.epoch = taken_under;  // an unknown loading would compare equal to any
    board.snapshot_kept = false;
  }
  const bool worth_a_line = !board.yielded || parts_.clock.now() - board.last_drift > config_.retry_longest;
  board.last_drift = parts_.clock.now();
  board.stranger = shown;
  board.external_limit.reset();
  const auto ours = hold.accepted;
  hold.accepted.reset();
  ++counters_.drift_seen;
  (void)save(board, Durability::survives_power_cut);
  if (worth_a_line) {
    audit("drift", board.id, 0, std::string(to_string(board.drift)),
          (ours ? "ours was " + format(*ours) + ", " : std::string()) + "now it shows " + format(shown));
  }
}

/// The driver was loaded again, here or by a reboot: limits are back at their defaults, or whoever set them up since.
void Engine::reloaded(Board& board, const DriverEpoch& epoch) {
  Hold& hold = *board.hold;
  const Milliwatts shown = present(board);
  const bool same_boot = hold.found.epoch.boot_id == epoch.boot_id;
  board.drift = Drift::factory_default;
  board.last_drift = parts_.clock.now();
  board.stranger.reset();
  board.external_limit.reset();
  // A limit that is still exactly ours on the same boot, and not the default, was not reset: it stays ours to restore.
  if (same_boot && hold.is_ours(shown, config_.rounding) && !is_factory_default(board.limits, config_.rounding)) {
    hold.found.epoch = epoch;
    (void)save(board, Durability::survives_crash);
    audit("reload", board.id, 0, "survived", "the driver was loaded again and still shows our " + format(shown));
    return;
  }
  board.locked.reset();
  if (hold.kind == LeaseKind::saving) {
    ++counters_.closed_after_reload;
    audit("reload", board.id, 0, "unwritten",
          fmt::format("{}; found {} before, shows {} now", same_boot ? "the driver was loaded again" : "reboot",
                      hold.found.limit() ? format(*hold.found.limit()) : "nothing", format(shown)));
    forget(board);
    return;
  }
  hold.found.epoch = epoch;
  hold.clocks_locked = false;
  hold.accepted.reset();
  hold.intents.clear();
  (void)save(board, Durability::survives_power_cut);
  audit("reload", board.id, 0, "budget", "shows " + format(shown) + "; the budget's limit is applied again");
}

/// Enforced below our own request, and the request is still ours: someone outside (BMC, power brake) holds the board.
void Engine::see_ceiling(Board& board) {
  const auto& enforced = board.limits.enforced;
  if (!board.hold || !board.hold->accepted || !is_known(enforced)) return;
  const bool below = enforced.value < *board.hold->accepted - config_.rounding;
  if (below && (!board.external_limit || *board.external_limit != enforced.value)) {
    audit("external_limit", board.id, 0, "seen",
          format(enforced.value) + " is enforced below our " + format(*board.hold->accepted));
  }
  if (!below && board.external_limit) audit("external_limit", board.id, 0, "gone", "");
  board.external_limit = below ? std::optional(enforced.value) : std::nullopt;
}

/// What a board that answers may hold: one garbled read or a stuck call must not make room that is not there.
Milliwatts Engine::highest_possible(const Board& board) const {
  Milliwatts highest = std::max({present(board), board.limits.enforced.value_or(Milliwatts(0)), board.shown_before});
  if (board.hold && board.hold->accepted) highest = std::max(highest, *board.hold->accepted);
  if (board.hold) {
    for (const Milliwatts intent : board.hold->intents) highest = std::max(highest, intent);
  }
  return highest;
}

std::vector<BoardDraw> Engine::draws(const Board* changed, Milliwatts cap) const {
  constexpr Milliwatts kUnknownMaximum(100'000'000);  // nothing fits beside a board of which nothing is known
  std::vector<BoardDraw> all;
  for (const auto& [id, board] : boards_) {
    const auto range = allowed_range(id, config_.policy(id), board.limits);
    BoardDraw draw{id, {}, range ? range->low : Milliwatts(0), safe_cap(board)};
    const Milliwatts maximum = board.maximum.value_or(
        config_.node_budget ? config_.node_budget->board_maximum.value_or(kUnknownMaximum) : kUnknownMaximum);
    // Room for an increase is only what is seen at this moment; what is in force is believed for a while.
    draw.silent = is_silent(board) || (changed != nullptr && board.unseen);
    draw.cap = draw.silent ? maximum : highest_possible(board);
    if (&board == changed && !draw.silent) draw.cap = std::max(draw.cap, cap);
    all.push_back(draw);
  }
  return all;
}

void Engine::verify(MonoTime now) {
  const auto listed = refresh_devices();
  if (!listed && listed.error().what != list_error_) {  // said once, not every two seconds
    log::warning("guard", "the driver does not list its devices: {}", listed.error().message());
  }
  list_error_ = listed ? std::string() : listed.error().what;
  for (auto& [id, board] : boards_) {
    const bool waits = now < board.retry.next;
    if (budget_ && (!board.hold || waits)) (void)look(board);  // what it holds by now is in the sum
    if (waits) continue;
    if (board.wished() || (board.hold && board.hold->parked)) {
      drive(board);
    } else if (board.hold) {
      give_back(board, false);
    }
  }
  if (budget_) hold_budget();
}

/// The budget is exceeded by something that nobody asked us for: a lost board that counts at its maximum, a stranger's
/// write, a node that draws more. All boards fall to their safe caps, which fit; the owner may then ask anew.
void Engine::hold_budget() {
  const MonoTime now = parts_.clock.now();
  const bool over = !budget_->holds(draws(nullptr, Milliwatts(0)), now);
  if (over) {
    for (auto& [id, board] : boards_) {
      if (!board.hold || board.hold->parked) continue;
      board.hold->kind = LeaseKind::budget;
      park(board);
      drive(board);
    }
  }
  const bool still = over && !budget_->holds(draws(nullptr, Milliwatts(0)), now);
  if (over && !over_budget_) {
    std::string drain;
    if (still) {
      for (const DeviceId& id : budget_->drain_list(draws(nullptr, Milliwatts(0)), now)) drain += " " + id.text();
    }
    audit("budget", budget_->config().meter, 0, still ? "exceeded" : "safe_caps",
          "all boards at their safe caps" + (drain.empty() ? "" : "; take the jobs off:" + drain));
  }
  over_budget_ = still;
}

}  // namespace flyball::guard
