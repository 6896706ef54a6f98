#include "control/run_keeper.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace flyball::control {
namespace {

ledger::DecisionEntry to_entry(const loop::DecisionRecord& record) {
  ledger::DecisionEntry entry{record.number,   record.wall, record.observation, record.frozen,
                              record.proposal, {},          record.findings};
  for (const guard::WriteOutcome& w : record.writes) {
    entry.writes.push_back(
        {w.device, w.asked, w.accepted, w.enforced, std::string(guard::to_string(w.state)), w.reason});
  }
  return entry;
}

void note_lock(GpuControl& gpu, const Proposal& proposal) {
  for (const GpuProposal& wish : proposal.gpus) {
    if (wish.device != gpu.device || !wish.locked_clocks) continue;
    if (!gpu.lowest_lock || wish.locked_clocks->high < *gpu.lowest_lock) gpu.lowest_lock = wish.locked_clocks->high;
  }
}

}  // namespace

std::string policy_within(const std::optional<Watts>& budget, const std::string& policy) {
  return budget ? "budget:" + format_exact(budget->value()) + "W:" + policy : policy;
}

Result<> check_budget(const std::optional<Watts>& budget, bool observe_only, bool switchback) {
  if (!budget) return {};
  if (observe_only) return fail(ErrorCode::input, "a run that sets nothing holds no budget", "--budget");
  if (switchback) {
    return fail(ErrorCode::input, "blocks at the limits found would be over the budget", "--switchback-share",
                "give 0, or no budget");
  }
  return {};
}

void RunKeeper::begin(const ledger::RunStart& start) {
  if (ledger_ == nullptr) return;
  const auto id = ledger_->begin_run(start);
  if (id) {
    run_.ledger_run = *id;
  } else {
    give_up(id.error());
  }
}

void RunKeeper::add(const loop::DecisionRecord& record) {
  ++run_.decisions;
  if (!record.frozen.empty()) ++run_.frozen;
  add_limits(record);
  add_budget(record);
  add_phase(record);
  if ((run_.decisions - 1) % stride_ == 0) {
    for (const GpuObservation& gpu : record.observation.gpus) {
      add_point(gpu.device, Signal::power_average, record.wall, {gpu.power.value.value(), gpu.power.status});
      add_point(gpu.device, Signal::limit_enforced, record.wall,
                {gpu.limit_enforced.value.watts().value(), gpu.limit_enforced.status});
    }
    thin();
  }
  if (!run_.ledger_run || ledger_ == nullptr) return;
  if (const auto added = ledger_->add_decision(*run_.ledger_run, to_entry(record)); !added) give_up(added.error());
}

void RunKeeper::add_limits(const loop::DecisionRecord& record) {
  std::vector<GpuControl>& gpus = run_.result.gpus;
  if (gpus.empty()) {
    for (const GpuObservation& gpu : record.observation.gpus) {
      gpus.push_back({});
      gpus.back().device = gpu.device;
    }
    limits_.resize(gpus.size());
  }
  for (std::size_t i = 0; i < gpus.size() && i < record.observation.gpus.size(); ++i) {
    const Sample<Milliwatts>& enforced = record.observation.gpus[i].limit_enforced;
    if (!enforced) continue;
    GpuControl& gpu = gpus[i];
    // The first interval ends before anything is written.
    if (!gpu.found && record.number == 1) gpu.found = enforced;
    if (!gpu.lowest || *enforced < *gpu.lowest) gpu.lowest = enforced;
    limits_[i].add(static_cast<double>((*enforced).value()));
    gpu.mean = Milliwatts(std::llround(limits_[i].mean()));
  }
  for (const guard::WriteOutcome& write : record.writes) {
    const auto gpu =
        std::find_if(gpus.begin(), gpus.end(), [&](const GpuControl& g) { return g.device == write.device; });
    if (gpu == gpus.end()) continue;
    using guard::WriteState;
    if (write.state == WriteState::applied || write.state == WriteState::deferred) {
      ++gpu->writes;
      note_lock(*gpu, record.proposal);
    }
    if (write.state == WriteState::refused || write.state == WriteState::failed) ++gpu->refused;
  }
}

void RunKeeper::add_budget(const loop::DecisionRecord& record) {
  if (!run_.result.budget) return;
  BudgetHeld& budget = *run_.result.budget;
  Watts limits, power;
  for (const GpuObservation& gpu : record.observation.gpus) {
    if (gpu.limit_enforced) limits += (*gpu.limit_enforced).watts();
    if (gpu.power) power += *gpu.power;
  }
  budget.highest_limits = std::max(budget.highest_limits, limits);
  budget.highest_power = std::max(budget.highest_power, power);
}

void RunKeeper::add_phase(const loop::DecisionRecord& record) {
  const Phase phase = record.observation.phase;
  if (phase == Phase::unknown) return;
  const WallTime start = record.wall - record.observation.interval;
  std::vector<PhaseSpan>& phases = run_.phases;
  // Neighbours of one label are one span; clocks that are set leave a seam of less than an interval.
  const bool goes_on =
      !phases.empty() && phases.back().label == phase && start - phases.back().stop < record.observation.interval / 2;
  if (goes_on) {
    phases.back().stop = record.wall;
  } else if (phases.size() < kMostPhases) {
    phases.push_back({phase, start, record.wall});
  }
}

void RunKeeper::restored(const DeviceId& device, const std::string& after) {
  for (GpuControl& gpu : run_.result.gpus) {
    if (gpu.device == device && gpu.writes > 0) gpu.after = after;
  }
}

void RunKeeper::take(const loop::Loop& loop) {
  run_.result.account = loop.account();
  run_.result.writes = loop.writes();
  run_.result.writes_refused = loop.writes_refused();
  run_.rejected = loop.rejected();
  run_.result.switchback = loop.switchback();
  for (const loop::Loop::StartWrite& write : loop.start_writes()) {
    for (GpuControl& gpu : run_.result.gpus) {
      if (gpu.device != write.device) continue;
      gpu.found = write.found;
      ++gpu.writes;
    }
  }
  std::vector<Finding> findings = loop.findings();
  told_ = findings.size();
  findings.insert(findings.end(), run_.result.findings.begin(), run_.result.findings.end());
  run_.result.findings = std::move(findings);
}

void RunKeeper::not_restored(WallTime since) {
  run_.degraded = true;
  Finding finding;
  finding.severity = Severity::alarm;
  finding.code = "limit.not_restored";
  finding.what = "not every limit is back as it was found";
  finding.remedy = "flyball restore";
  finding.since = since;
  run_.result.findings.push_back(std::move(finding));
}

void RunKeeper::recording_not_written(const std::string& why, WallTime since) {
  run_.degraded = true;
  run_.result.findings.push_back({Severity::warning,
                                  "recording.not_written",
                                  {},
                                  why,
                                  "the result is whole; only its recording lacks something",
                                  since,
                                  1});
}

void RunKeeper::end(WallTime finished) {
  if (!run_.ledger_run || ledger_ == nullptr) return;
  // The loop's own findings came with the decisions.
  RunResult rest = run_.result;
  rest.findings.erase(rest.findings.begin(), rest.findings.begin() + static_cast<std::ptrdiff_t>(told_));
  const auto state = run_.interrupted ? ledger::RunState::interrupted : ledger::RunState::done;
  if (const auto ended = ledger_->end_run(*run_.ledger_run, state, finished, rest); !ended) give_up(ended.error());
}

void RunKeeper::add_point(const DeviceId& device, Signal signal, WallTime at, Value value) {
  auto found = std::find_if(run_.series.begin(), run_.series.end(),
                            [&](const series::Series& s) { return s.key.device == device && s.key.signal == signal; });
  if (found == run_.series.end()) {
    run_.series.push_back({{device, signal, Scope::board, source_}, {}});
    found = run_.series.end() - 1;
  }
  found->points.push_back({at, value.value, value.status});
}

void RunKeeper::thin() {
  const bool full = std::any_of(run_.series.begin(), run_.series.end(),
                                [](const series::Series& s) { return s.points.size() >= kMostPoints; });
  if (!full) return;
  stride_ *= 2;
  for (series::Series& s : run_.series) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < s.points.size(); i += 2) s.points[kept++] = s.points[i];
    s.points.resize(kept);
  }
}

void RunKeeper::give_up(const Error& error) {
  ledger_ = nullptr;
  run_.degraded = true;
  Finding finding;
  finding.severity = Severity::warning;
  finding.code = "ledger.not_written";
  finding.what = error.message();
  finding.remedy = "the result is whole; only its row in the ledger is missing or cut short";
  finding.since = run_.result.started;
  run_.result.findings.push_back(std::move(finding));
}

}  // namespace flyball::control
