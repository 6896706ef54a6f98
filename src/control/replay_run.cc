#include "control/replay_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <queue>
#include <unordered_map>
#include <utility>

#include "base/checksum.h"
#include "base/text.h"
#include "control/run_recorder.h"
#include "device/replay/replay_driver.h"
#include "guard/authority.h"
#include "loop/loop.h"
#include "policy/policy.h"
#include "series/phases.h"
#include "series/survey.h"

namespace flyball::control {
namespace {

constexpr std::string_view kAsRecorded = "recorded";
/// Where a recording has a hole, polls are held for so long, as a live loop would; then time leaps to its end.
constexpr Seconds kPolledHole{60};

/// The past cannot be written. Where the recorded policy runs again and the recording tells what became of the very
/// same wish, that is the answer.
class PastAuthority final : public guard::LimitAuthority {
 public:
  void feed(const guard::WriteOutcome& outcome) { outcomes_.push_back(outcome); }
  void feed_lease(std::string_view what) {
    lost_ = lost_ || what == "lost";
    refused_ = refused_ || what == "refused";
  }
  void forget() {
    outcomes_.clear();
    lost_ = refused_ = false;
  }

  Result<guard::LeaseId> acquire(const guard::LeaseRequest&) override {
    if (refused_) return fail(ErrorCode::refused, "the lease was refused when it was recorded");
    return guard::LeaseId{1};
  }
  Result<> renew(guard::LeaseId) override {
    if (lost_) return fail(ErrorCode::failed, "the lease was lost when it was recorded");
    return {};
  }
  Result<std::vector<guard::WriteOutcome>> write(guard::LeaseId,
                                                 const std::vector<guard::WriteRequest>& requests) override {
    std::vector<guard::WriteOutcome> all;
    for (const guard::WriteRequest& request : requests) {
      guard::WriteOutcome refused;
      refused.device = request.device;
      refused.asked = request.power_limit.value_or(Milliwatts(0));
      refused.reason = "a recording: what happened cannot be changed";
      const auto same = std::find_if(outcomes_.begin(), outcomes_.end(), [&](const guard::WriteOutcome& o) {
        return o.device == request.device && o.asked == refused.asked;
      });
      all.push_back(same != outcomes_.end() ? *same : std::move(refused));
    }
    return all;
  }
  Result<std::vector<guard::RestoreOutcome>> release(guard::LeaseId) override {
    return std::vector<guard::RestoreOutcome>{};
  }
  Result<std::vector<guard::RestoreOutcome>> restore_all(const std::string&) override {
    return std::vector<guard::RestoreOutcome>{};
  }

 private:
  // Of this poll:
  std::vector<guard::WriteOutcome> outcomes_;
  bool lost_ = false, refused_ = false;
};

/// The job's progress as it was recorded.
class PastProgress final : public loop::ProgressSource {
 public:
  void tokens(MonoTime at, double count) {
    known_ = true;
    last_.at = at;
    last_.tokens = static_cast<std::uint64_t>(count);
    if (!steps_recorded_) ++last_.steps;
  }
  void steps(double count) {
    steps_recorded_ = true;
    last_.steps = static_cast<std::uint64_t>(count);
  }
  void phase(const series::PhaseEdge& edge) {
    if (edge.starts) last_.phase = edge.phase;
    if (!edge.starts && edge.phase == last_.phase) last_.phase = Phase::unknown;
  }
  /// Of a live run: whether the job answered at this poll.
  void silent(bool is) { silent_ = is; }
  void waited(const DeviceId& device, double seconds) { waited_[device] = Seconds(seconds); }
  Sample<WorkloadProgress> progress() override {
    return known_ && !silent_ ? Sample<WorkloadProgress>(last_) : Sample<WorkloadProgress>::absent(Status::missing);
  }
  Sample<Seconds> waited(const DeviceId& device) override {
    const auto found = waited_.find(device);
    return found != waited_.end() ? Sample<Seconds>(found->second) : Sample<Seconds>::absent(Status::missing);
  }

 private:
  WorkloadProgress last_;
  std::unordered_map<DeviceId, Seconds> waited_;
  bool known_ = false, steps_recorded_ = false, silent_ = false;
};

/// Ends its input when somebody says stop.
class StoppableBytes final : public ByteSource {
 public:
  StoppableBytes(std::unique_ptr<ByteSource> bytes, const bool& stopped)
      : bytes_(std::move(bytes)), stopped_(stopped) {}
  Result<std::size_t> read(char* to, std::size_t size) override {
    if (stopped_) return std::size_t{0};
    return bytes_->read(to, size);
  }
  std::string damage() const override { return stopped_ ? std::string() : bytes_->damage(); }

 private:
  std::unique_ptr<ByteSource> bytes_;
  const bool& stopped_;
};

/// Puts the input in order of time and drives the loop with it, poll by recorded poll.
class Player final : public series::Sink {
 public:
  Player(const series::Survey& survey, const ReplayRunOptions& options, ReplayRun& run, policy::Policy& policy,
         const RecordedPolicy& plan, bool as_recorded, WallTime start)
      : survey_(survey),
        options_(options),
        run_(run),
        start_(start),
        clock_(start),
        driver_(clock_),
        as_recorded_(as_recorded) {
    for (const series::Survey::One& one : survey.series()) {
      roles_.push_back(role_of(one));
    }
    loop::Options how;
    how.poll = run.poll;
    how.decision = run.decision;
    how.run_length = plan.run_length;
    how.devices = options.devices;
    how.seed = plan.seed;
    how.switchback = plan.switchback;
    how.clocks_unlocked = plan.clocks_unlocked;
    how.purpose = "flyball replay";
    how.start_must_hold = false;
    loop_.emplace(driver_, clock_, authority_, progress_, policy, std::move(how));
  }

  std::uint32_t begin_series(const series::SeriesKey&) override { return series_++; }
  void point(std::uint32_t series, const series::Point& point) override {
    if (series >= roles_.size() || roles_[series] == Role::none) return;
    take({point.at.nanoseconds(), next_++, series, point});
  }
  void event(const series::Event& event) override {
    static const std::vector<std::string_view> kUsed = {"decision", "wish",      "limit_write", "board_range",
                                                        "lease",    "objective", "limit_found"};
    if (!series::phase_edge(event) && std::find(kUsed.begin(), kUsed.end(), event.kind) == kUsed.end()) return;
    events_.emplace(next_, event);
    take({event.at.nanoseconds(), next_++, kEvent, {}});
  }
  void quarantine(const series::Quarantined&) override {}

  Result<> finish() {
    drain(INT64_MAX);
    if (next_poll_) poll_as_recorded();
    close_round();
    if (!failed_ && started_) {
      run_.account = loop_->account();
      run_.rejected = loop_->rejected();
      run_.findings = loop_->findings();
      // That nothing can be written here is no finding.
      std::erase_if(run_.findings, [](const Finding& f) { return f.code == "write.refused"; });
      leave_rest_to_audit();
    }
    if (failed_) return fail(*failed_);
    return {};
  }
  const bool& stopped() const { return stopped_; }

 private:
  enum class Role : std::uint8_t { none, board, tokens, steps, waited, polls };
  static constexpr std::uint32_t kEvent = UINT32_MAX;
  struct Item {
    std::int64_t at_ns;
    std::uint64_t number;
    std::uint32_t series;
    series::Point point;
  };
  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      return std::pair(a.at_ns, a.number) > std::pair(b.at_ns, b.number);
    }
  };

  Role role_of(const series::Survey::One& one) {
    const series::SeriesKey& key = one.key;
    if (key.signal == Signal::tokens) return std::exchange(have_tokens_, true) ? Role::none : Role::tokens;
    if (key.signal == Signal::other && key.source == kStepsSource) return Role::steps;
    if (key.signal == Signal::other && key.source == kPollsSource) {
      polls_recorded_ = true;
      return Role::polls;
    }
    if (key.signal == Signal::other && key.source == kWaitedSource) return Role::waited;
    return driver_.add_series(key, one.period()) ? Role::board : Role::none;
  }

  void take(Item item) {
    if (stopped_ || failed_) return;
    newest_ns_ = std::max(newest_ns_, item.at_ns);
    waiting_.push(item);
    constexpr std::size_t kMostWaiting = (std::size_t{512} << 20) / sizeof(Item);
    if (waiting_.size() > kMostWaiting) {
      failed_ = Error{ErrorCode::input,
                      "the input is too far out of order of time to be replayed in memory",
                      {},
                      "sort it by time, or replay a part of it"};
      return;
    }
    drain(newest_ns_ - static_cast<std::int64_t>(survey_.disorder().value() * 1e9) - 1);
  }

  /// What comes later is not before `until`.
  void drain(std::int64_t until_ns) {
    while (!waiting_.empty() && waiting_.top().at_ns < until_ns && !stopped_ && !failed_) {
      Item item = waiting_.top();
      waiting_.pop();
      // What was written at the instant of a poll comes before it, whichever way the recording has them.
      if (next_poll_ && item.at_ns > next_poll_->at_ns) poll_as_recorded();
      if (item.series != kEvent && roles_[item.series] == Role::polls) {
        next_poll_ = item;
        continue;
      }
      const bool board = !polls_recorded_ && item.series != kEvent && roles_[item.series] == Role::board;
      // Points that are nearer than half a poll were read in one round.
      if (board && round_ && Seconds(static_cast<double>(item.at_ns - round_->first) * 1e-9) > run_.poll / 2)
        close_round();
      if (board && !round_) round_ = Round{item.at_ns, item.at_ns};
      if (board) round_->last = item.at_ns;
      batch_.push_back(item);
    }
  }

  void close_round() {
    if (!round_ || stopped_ || failed_) return;
    const Round round = *std::exchange(round_, std::nullopt);
    if (started_) {
      const MonoTime first = mono(round.first);
      const MonoTime hole_start = clock_.now();
      while (first - clock_.now() > run_.poll * 1.5 && clock_.now() - hole_start < kPolledHole && !stopped_)
        poll(clock_.now() + run_.poll);
    }
    poll(mono(round.last));
  }

  /// A poll of a live run, which the recording names: the loop sees what was read before it, and of the job what it
  /// saw.
  void poll_as_recorded() {
    const Item at = *std::exchange(next_poll_, std::nullopt);
    progress_.silent(at.point.status != Status::ok);
    shown_tokens_ = at.point.status == Status::ok ? at.point.value : 0;
    unseen_from_ns_ = INT64_MAX;
    poll(mono(at.at_ns));
  }

  MonoTime mono(std::int64_t wall_ns) const { return MonoTime(wall_ns - start_.nanoseconds()); }

  void poll(MonoTime at) {
    if (options_.stop && options_.stop()) {
      stopped_ = run_.interrupted = true;
      return;
    }
    clock_.sleep_until(at);
    authority_.forget();
    std::deque<Item> later;
    while (!batch_.empty() && mono(batch_.front().at_ns) <= at) {
      if (is_not_seen_yet(batch_.front())) {
        later.push_back(batch_.front());
      } else {
        feed(batch_.front());
      }
      batch_.pop_front();
    }
    batch_.insert(batch_.begin(), later.begin(), later.end());
    ++run_.polls;
    run_.span.stop = clock_.wall();
    if (!started_) {
      started_ = true;
      if (const auto begun = loop_->start(); !begun) failed_ = begun.error();
      return;
    }
    if (const auto record = loop_->tick()) decided(*record);
    // Another policy only wishes: the limits that the recorded run wrote are the plant's own and nobody's interference.
    // They held from behind the poll at which they were written.
    for (const guard::WriteOutcome& outcome : std::exchange(written_, {})) loop_->adopt(outcome);
  }

  /// A step that had ended, and the job told of it only later.
  bool is_not_seen_yet(const Item& item) {
    if (!polls_recorded_ || item.series == kEvent) return false;
    if (roles_[item.series] == Role::tokens && item.point.status == Status::ok && item.point.value > shown_tokens_)
      unseen_from_ns_ = item.at_ns;
    const bool of_job = roles_[item.series] == Role::tokens || roles_[item.series] == Role::steps;
    return of_job && item.at_ns >= unseen_from_ns_;
  }

  void feed(const Item& item) {
    if (item.series == kEvent) {
      feed_event(events_.at(item.number));
      events_.erase(item.number);
      return;
    }
    const series::Point& point = item.point;
    switch (roles_[item.series]) {
      case Role::board:
        driver_.feed(survey_.series()[item.series].key, point);
        break;
      case Role::tokens:
        if (point.status == Status::ok) progress_.tokens(mono(item.at_ns), point.value);
        break;
      case Role::steps:
        if (point.status == Status::ok) progress_.steps(point.value);
        break;
      case Role::waited:
        if (point.status == Status::ok) progress_.waited(survey_.series()[item.series].key.device, point.value);
        break;
      case Role::polls:
      case Role::none:
        break;
    }
  }

  void feed_event(const series::Event& event) {
    if (const auto edge = series::phase_edge(event)) return progress_.phase(*edge);
    if (event.kind == "board_range") return feed_range(event);
    if (event.kind == "limit_found") return loop_->adopt_found(event.device, Milliwatts::from(Watts(event.value)));
    if (event.kind == "lease") return authority_.feed_lease(event.detail);
    if (event.kind == "objective") {
      const auto objective = parse_objective_event(event);
      if (objective && run_.audit) (void)loop_->set_objective(*objective);  // another policy has its own
      return;
    }
    if (event.kind == "limit_write") {
      const auto outcome = parse_write_event(event);
      if (outcome && as_recorded_) authority_.feed(*outcome);
      if (outcome && !as_recorded_) written_.push_back(*outcome);
      return;
    }
    constexpr std::size_t kMostHeld = 100'000;
    if (run_.audit && recorded_.size() < kMostHeld) recorded_.push_back(event);
  }

  void feed_range(const series::Event& event) {
    const auto range = parse_range_event(event);
    if (!range) return;
    driver_.set_range(event.device, range->first, range->second);
    ranges_[event.device] = *range;
  }

  void decided(const loop::DecisionRecord& record) {
    ++run_.decisions;
    if (!record.frozen.empty()) ++run_.frozen;
    const auto events = decision_events(record);
    std::string text = run_.digest;
    for (const series::Event& e : events)
      text += fmt::format("\n{} {} {} {}", e.kind, e.device.text(), format_exact(e.value), e.detail);
    run_.digest = sha256_hex(text);
    if (run_.audit) compare(record, events);
    for (const GpuProposal& wish : record.proposal.gpus) note_wish(record, wish);
  }

  void compare(const loop::DecisionRecord& record, const std::vector<series::Event>& now) {
    const auto same = [](const series::Event& a, const series::Event& b) {
      return a.at == b.at && a.kind == b.kind && a.device == b.device && a.value == b.value && a.detail == b.detail;
    };
    ReplayAudit& audit = *run_.audit;
    audit.recorded += static_cast<std::uint64_t>(
        std::count_if(recorded_.begin(), recorded_.end(), [](const series::Event& e) { return e.kind == "decision"; }));
    if (std::equal(now.begin(), now.end(), recorded_.begin(), recorded_.end(), same)) {
      ++audit.identical;
    } else if (audit.first_difference.empty()) {
      const auto differs = std::mismatch(now.begin(), now.end(), recorded_.begin(), recorded_.end(), same);
      const auto shown = [](auto at, auto end) {
        return at == end ? std::string("nothing")
                         : fmt::format("{} {} {} {}", at->kind, at->device.text(), format_exact(at->value), at->detail);
      };
      audit.first_difference =
          fmt::format("decision {} at {}: recorded {}; replayed {}", record.number, format_rfc3339(record.wall),
                      shown(differs.second, recorded_.end()), shown(differs.first, now.end()));
    }
    recorded_.clear();
  }

  /// Decisions that were recorded behind the last one that came out again.
  void leave_rest_to_audit() {
    if (!run_.audit || run_.interrupted) return;
    for (const Item& item : batch_)
      if (item.series == kEvent) feed_event(events_.at(item.number));
    for (const series::Event& e : recorded_) {
      if (e.kind != "decision") continue;
      ++run_.audit->recorded;
      if (run_.audit->first_difference.empty())
        run_.audit->first_difference = fmt::format("the recorded decision {} did not come out again", e.value);
    }
  }

  void note_wish(const loop::DecisionRecord& record, const GpuProposal& wish) {
    if (!wish.power_limit && !wish.locked_clocks && !wish.unlock_clocks) return;
    GpuProposal& last = last_wish_[wish.device];
    if (last.power_limit == wish.power_limit && last.locked_clocks == wish.locked_clocks) return;
    last = wish;
    ++run_.wishes_changed;
    if (run_.wishes.size() >= ReplayRun::kMostWishes) return;
    ReplayedWish shown{record.number,      record.wall, wish.device,           wish.power_limit, {},
                       wish.locked_clocks, {},          record.proposal.reason};
    const auto range = ranges_.find(wish.device);
    if (wish.power_limit && range != ranges_.end())
      shown.allowed = std::clamp(*wish.power_limit, range->second.first, range->second.second);
    for (const GpuObservation& gpu : record.observation.gpus)
      if (gpu.device == wish.device) shown.in_force = gpu.limit_enforced;
    run_.wishes.push_back(std::move(shown));
  }

  struct Round {
    std::int64_t first, last;
  };

  const series::Survey& survey_;
  const ReplayRunOptions& options_;
  ReplayRun& run_;
  WallTime start_;
  VirtualClock clock_;
  device::ReplayDriver driver_;
  PastAuthority authority_;
  PastProgress progress_;
  std::optional<loop::Loop> loop_;
  std::vector<Role> roles_;
  bool have_tokens_ = false;
  std::uint32_t series_ = 0;
  std::uint64_t next_ = 0;
  std::int64_t newest_ns_ = INT64_MIN;
  std::priority_queue<Item, std::vector<Item>, Later> waiting_;
  std::unordered_map<std::uint64_t, series::Event> events_;
  std::deque<Item> batch_;  ///< in order of time, up to the end of the open round
  std::optional<Round> round_;
  // Of a live run:
  bool polls_recorded_ = false;
  std::optional<Item> next_poll_;
  double shown_tokens_ = 0;
  std::int64_t unseen_from_ns_ = INT64_MAX;
  std::deque<series::Event> recorded_;
  std::vector<guard::WriteOutcome> written_;  ///< by the recorded run, since the last poll
  bool as_recorded_;
  std::unordered_map<DeviceId, std::pair<Milliwatts, Milliwatts>> ranges_;
  std::unordered_map<DeviceId, GpuProposal> last_wish_;
  bool started_ = false, stopped_ = false;
  std::optional<Error> failed_;
};

/// The policy that is asked for, and whether it is the recorded one.
Result<RecordedPolicy> plan_of(const series::Survey& survey, const ReplayRunOptions& options, bool& as_recorded) {
  const auto found = survey.events().find("policy");
  std::optional<RecordedPolicy> recorded;
  if (found != survey.events().end()) {
    FLYBALL_ASSIGN(recorded, parse_policy_event(found->second.first));
  }
  if (options.policy == kAsRecorded) {
    if (!recorded)
      return fail(ErrorCode::input, "the recording is of no run of the loop, it names no policy", "--policy",
                  "name one, see flyball policy list");
    as_recorded = true;
    return *recorded;
  }
  RecordedPolicy plan{options.policy, options.objective, options.seed, Seconds(0), Seconds(10), {}, {}, false};
  if (recorded) {
    plan.poll = recorded->poll;
    plan.run_length = recorded->run_length;
    plan.decision = recorded->decision;
    plan.clocks_unlocked = recorded->clocks_unlocked;
    as_recorded = recorded->policy == plan.policy && recorded->seed == plan.seed &&
                  recorded->objective.alpha == plan.objective.alpha &&
                  recorded->objective.max_loss_fraction == plan.objective.max_loss_fraction;
    // Blocks at the limits found belong to the run that was; another policy is asked in all of them.
    if (as_recorded) plan.switchback = recorded->switchback;
  }
  return plan;
}

}  // namespace

Result<ReplayRun> replay_run(const std::function<Result<std::unique_ptr<ByteSource>>()>& open, const std::string& name,
                             const series::ReadOptions& reading, const ReplayRunOptions& options) {
  series::Survey survey;
  {
    FLYBALL_ASSIGN(auto bytes, open());
    FLYBALL_TRY(series::read_bytes(std::move(bytes), name, reading, survey));
  }
  ReplayRun run;
  bool as_recorded = false;
  FLYBALL_ASSIGN(RecordedPolicy plan, plan_of(survey, options, as_recorded));
  const auto is_power = [](const series::Survey::One& one) {
    return one.key.signal == Signal::power_average || one.key.signal == Signal::power_instant;
  };
  std::optional<WallTime> start;
  std::optional<WallTime> first_poll;
  for (const series::Survey::One& one : survey.series()) {
    // A live run begins with its first poll, whatever was read for it before.
    if (one.points > 0 && one.key.source == kPollsSource) first_poll = one.all.start;
    if (one.points == 0 || one.key.signal == Signal::tokens || one.key.signal == Signal::other) continue;
    start = start ? std::min(*start, one.all.start) : one.all.start;
    if (!is_power(one) || !(one.period() > Seconds(0))) continue;
    run.poll = run.poll > Seconds(0) ? std::min(run.poll, one.period()) : one.period();
  }
  if (!start || !(run.poll > Seconds(0)))
    return fail(ErrorCode::input, "there is no power of any board in it to replay", name);
  if (first_poll) start = first_poll;
  if (plan.poll) run.poll = *plan.poll;
  const bool decision_known = survey.events().contains("policy");
  run.decision = options.decision.value_or(decision_known ? plan.decision : std::max(plan.decision, run.poll * 2));
  as_recorded = as_recorded && run.decision == plan.decision;
  run.policy = plan.policy;
  run.objective = plan.objective;
  run.seed = plan.seed;
  run.span = {*start, *start};
  if (as_recorded && survey.events().contains("decision")) run.audit.emplace();
  FLYBALL_ASSIGN(const auto policy, policy::make(plan.policy, plan.objective));
  Player player(survey, options, run, *policy, plan, as_recorded, *start);
  FLYBALL_ASSIGN(auto bytes, open());
  FLYBALL_TRY(
      series::read_bytes(std::make_unique<StoppableBytes>(std::move(bytes), player.stopped()), name, reading, player));
  FLYBALL_TRY(player.finish());
  return run;
}

}  // namespace flyball::control
