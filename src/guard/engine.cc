#include "guard/engine.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace flyball::guard {

std::string_view to_string(Drift drift) {
  switch (drift) {
    case Drift::none:
      return "none";
    case Drift::foreign_writer:
      return "foreign_writer";
    case Drift::factory_default:
      return "factory_default";
    case Drift::above_request:
      return "above_request";
  }
  return "unknown";
}

Engine::Engine(EngineParts parts, EngineConfig config) : parts_(std::move(parts)), config_(std::move(config)) {}

Result<std::unique_ptr<Engine>> Engine::start(EngineParts parts, EngineConfig config) {
  std::unique_ptr<Engine> engine(new Engine(parts, std::move(config)));
  if (engine->config_.node_budget) {
    FLYBALL_ASSIGN(engine->budget_, NodeBudget::make(*engine->config_.node_budget));
  }
  FLYBALL_ASSIGN(engine->journal_, Journal::open(parts.files, engine->config_.journal_path));
  // Ids of an earlier guard's leases are never given again: its clients learn that they have none.
  engine->next_lease_ = (engine->journal_->generation() << 32) + 1;
  engine->recover();
  return engine;
}

bool Engine::Board::wished() const {
  return std::any_of(slots.begin(), slots.end(),
                     [](const auto& slot) { return slot && (slot->wish.limit || slot->wish.clocks); });
}

bool Engine::Board::under_budget() const {
  return (hold && hold->kind == LeaseKind::budget) ||
         std::any_of(slots.begin(), slots.end(), [](const auto& slot) { return slot && slot->binds_budget(); });
}

bool Engine::is_silent(const Board& board) const {
  return board.state != DeviceState::ok || !board.read_at || parts_.clock.now() - *board.read_at > config_.stale_after;
}

Milliwatts Engine::present(const Board& board) const {
  return is_known(board.limits.requested) ? board.limits.requested.value : board.limits.enforced.value;
}

Milliwatts Engine::safe_cap(const Board& board) const {
  const BoardPolicy& policy = config_.policy(board.id);
  const auto range = allowed_range(board.id, policy, board.limits);
  if (policy.safe_cap) return range ? range->clamp(*policy.safe_cap) : *policy.safe_cap;
  return range ? range->low : Milliwatts(0);
}

void Engine::audit(std::string kind, const DeviceId& device, LeaseId lease, std::string outcome, std::string detail) {
  const AuditEvent event{parts_.clock.wall(), std::move(kind), device, lease, std::move(outcome), std::move(detail)};
  const auto kept = parts_.audit.record(event);
  if (!kept && !audit_broken_) {
    log::error("guard", "the audit log cannot be written, so no new lease is given: {}", kept.error().message());
  }
  audit_broken_ = !kept;
  if (!kept) ++counters_.audit_lost;
}

void Engine::tick() {
  const MonoTime now = parts_.clock.now();
  expire(now);
  if (now >= next_verify_) {
    verify(now);
    next_verify_ = now + config_.verify_period;
  } else {
    for (auto& [id, board] : boards_) {
      if (!board.pending || now < board.retry.next) continue;
      if (board.wished() || (board.hold && board.hold->parked)) {
        drive(board);
      } else {
        give_back(board, false);
      }
    }
  }
  if (journal_->broken() && now >= next_mend_) {
    next_mend_ = now + config_.retry_longest;
    if (journal_->mend()) log::info("guard", "the journal can be written again");
  }
}

void Engine::observe_meter(const Sample<Watts>& meter, const Sample<Watts>& gpu_sum) {
  if (budget_) budget_->observe(parts_.clock.now(), meter, gpu_sum);
}

std::vector<BoardStatus> Engine::boards() const {
  std::vector<BoardStatus> all;
  for (const auto& [id, board] : boards_) {
    BoardStatus status;
    status.device = id;
    status.state = board.state;
    for (const auto& slot : board.slots) {
      if (slot) status.leases.push_back(slot->lease);
    }
    if (board.hold) {
      status.held = true;
      status.kind = board.hold->kind;
      status.parked = board.hold->parked;
      if (const auto found = board.hold->found.limit()) status.found = *found;
      status.accepted = board.hold->accepted;
      status.restoring = !board.wished() && !board.hold->parked;
    }
    status.requested = board.limits.requested;
    status.enforced = board.limits.enforced;
    status.external_limit = board.external_limit;
    status.drift = board.drift;
    status.drift_rewrites = board.rewrites;
    status.yielded = board.yielded;
    status.failures = board.retry.count;
    status.reason = board.retry.reason;
    all.push_back(std::move(status));
  }
  return all;
}

bool Engine::restoring() const {
  return std::any_of(boards_.begin(), boards_.end(), [](const auto& entry) {
    const Board& board = entry.second;
    return board.hold && !board.wished() && !board.watch_until && (!board.hold->parked || board.retry.count > 0);
  });
}

std::vector<std::string> Engine::alarms() const {
  constexpr int kTries = 3;  // once may be chance
  std::vector<std::string> alarms;
  if (journal_->broken()) alarms.push_back("the journal cannot be written: no new lease");
  if (!journal_->found().damage.empty()) {
    alarms.push_back("the journal was damaged: " + journal_->found().damage.front());
  }
  if (audit_broken_) alarms.push_back("the audit log cannot be written: no new lease");
  if (over_budget_) alarms.push_back("the node budget does not hold: all boards are at their safe caps");
  for (const auto& [id, board] : boards_) {
    if (board.retry.count >= kTries) {
      alarms.push_back(id.text() + ": " + std::to_string(board.retry.count) +
                       " failures in a row: " + board.retry.reason);
    }
    if (board.yielded) alarms.push_back(id.text() + ": another program keeps setting its limit; yielded to it");
  }
  return alarms;
}

}  // namespace flyball::guard
