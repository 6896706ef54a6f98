#include "control/run_recorder.h"

#include <fmt/format.h>

#include <bit>
#include <string_view>
#include <utility>

#include "base/checksum.h"
#include "base/text.h"

namespace flyball::control {
namespace {

/// A crash costs so much: of a simulated run, which is run again; and of a live one.
constexpr Seconds kFlushEvery{600};
constexpr Seconds kFlushLive{5};
constexpr std::string_view kUnlocked = "unlocked";

/// All that a policy sees, byte by byte.
class Observed {
 public:
  void number(double value) { word(std::bit_cast<std::uint64_t>(value)); }
  void word(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  template <class T, class Number>
  void sample(const Sample<T>& sample, Number number_of) {
    word(static_cast<std::uint64_t>(sample.status));
    if (sample) number(number_of(*sample));
  }
  void text(const std::string& value) {
    word(value.size());
    bytes_ += value;
  }
  std::uint32_t crc() const { return crc32(bytes_); }

 private:
  std::string bytes_;
};

std::uint32_t crc_of(const Observation& seen) {
  const auto unit = [](const auto& quantity) { return quantity.value(); };
  const auto plain = [](double value) { return value; };
  const auto whole = [](Milliwatts limit) { return static_cast<double>(limit.value()); };
  Observed bytes;
  bytes.word(static_cast<std::uint64_t>(seen.at.nanoseconds()));
  bytes.number(seen.interval.value());
  bytes.sample(seen.tokens_per_second, plain);
  bytes.sample(seen.step_time, unit);
  bytes.word(static_cast<std::uint64_t>(seen.phase));
  bytes.word(seen.tokens);
  bytes.number(seen.remaining.value());
  for (const GpuObservation& gpu : seen.gpus) {
    bytes.text(gpu.device.text());
    bytes.sample(gpu.power, unit);
    bytes.sample(gpu.energy, unit);
    bytes.sample(gpu.utilisation_fraction, plain);
    bytes.sample(gpu.temperature, unit);
    bytes.sample(gpu.sm_clock, unit);
    bytes.sample(gpu.limit_enforced, whole);
    bytes.sample(gpu.minimum, whole);
    bytes.sample(gpu.maximum, whole);
    bytes.word(gpu.throttle.bits);
    bytes.number(gpu.coverage_fraction);
    bytes.word((gpu.external_limiter ? 1U : 0U) + (gpu.hung_progress ? 2U : 0U));
    if (gpu.wait_fraction) bytes.number(*gpu.wait_fraction);
    if (gpu.clock_ceiling) bytes.number(gpu.clock_ceiling->value());
  }
  return bytes.crc();
}

/// The text behind `key=` up to the next blank; the last key takes the rest.
std::string_view field(std::string_view text, std::string_view key, bool last = false) {
  std::size_t at = 0;
  while ((at = text.find(key, at)) != std::string_view::npos) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    const std::size_t value = at + key.size();
    if (begins && value < text.size() && text[value] == '=') {
      const std::string_view rest = text.substr(value + 1);
      return last ? rest : rest.substr(0, rest.find(' '));
    }
    at = value;
  }
  return {};
}

Result<std::optional<double>> optional_number(std::string_view text) {
  if (text.empty() || text == "none") return std::optional<double>();
  FLYBALL_ASSIGN(const double value, parse_double(text));
  return std::optional<double>(value);
}

std::string number_or_none(const std::optional<double>& value) { return value ? format_exact(*value) : "none"; }

series::Event make_event(WallTime at, std::string kind, const DeviceId& device, double value, std::string detail) {
  constexpr std::size_t kLongest = 4096;  // a recording's text
  if (detail.size() > kLongest) detail.resize(kLongest);
  return {at, std::move(kind), device, {}, value, std::move(detail)};
}

}  // namespace

series::Event policy_event(const RecordedPolicy& p) {
  return make_event({}, "policy", {}, static_cast<double>(p.seed),
                    fmt::format("alpha={} max_loss_fraction={} run_length_s={} decision_s={} switchback_share={} "
                                "rare={}{}{} clocks={} policy={}",
                                number_or_none(p.objective.alpha), number_or_none(p.objective.max_loss_fraction),
                                format_exact(p.run_length.value()), format_exact(p.decision.value()),
                                number_or_none(p.switchback ? std::optional(p.switchback->share) : std::nullopt),
                                p.switchback ? to_string(p.switchback->rare) : "none",
                                p.switchback && p.switchback->block != experiment::Schedule::kBlock
                                    ? " switchback_block_s=" + format_exact(p.switchback->block.value())
                                    : std::string(),
                                p.poll ? " poll_s=" + format_exact(p.poll->value()) : std::string(),
                                p.clocks_unlocked ? kUnlocked : "as_found", p.policy));
}

Result<RecordedPolicy> parse_policy_event(const series::Event& event) {
  RecordedPolicy made;
  constexpr double kLargestSeed = 9007199254740992.0;  // 2^53: beyond, a double does not hold it
  if (!(event.value >= 0 && event.value <= kLargestSeed))
    return fail(ErrorCode::input, "the recorded seed is no whole number");
  made.seed = static_cast<std::uint64_t>(event.value);
  FLYBALL_ASSIGN(made.objective.alpha, optional_number(field(event.detail, "alpha")));
  FLYBALL_ASSIGN(made.objective.max_loss_fraction, optional_number(field(event.detail, "max_loss_fraction")));
  FLYBALL_ASSIGN(const double length, parse_double(field(event.detail, "run_length_s")));
  FLYBALL_ASSIGN(const double decision, parse_double(field(event.detail, "decision_s")));
  if (!(length >= 0) || !(decision > 0))
    return fail(ErrorCode::input, "the recorded run has no length or no interval between decisions");
  made.run_length = Seconds(length);
  made.decision = Seconds(decision);
  FLYBALL_ASSIGN(const auto share, optional_number(field(event.detail, "switchback_share")));
  if (share) {
    const bool canary = field(event.detail, "rare") == to_string(experiment::Arm::control);
    made.switchback = {.share = *share, .rare = canary ? experiment::Arm::control : experiment::Arm::original};
  }
  FLYBALL_ASSIGN(const auto block, optional_number(field(event.detail, "switchback_block_s")));
  if (made.switchback && block && *block > 0) made.switchback->block = Seconds(*block);
  FLYBALL_ASSIGN(const auto poll, optional_number(field(event.detail, "poll_s")));
  if (poll && *poll > 0) made.poll = Seconds(*poll);
  made.clocks_unlocked = field(event.detail, "clocks") == kUnlocked;
  made.policy = field(event.detail, "policy", true);
  return made;
}

Result<Objective> parse_objective_event(const series::Event& event) {
  Objective made;
  FLYBALL_ASSIGN(made.alpha, optional_number(field(event.detail, "alpha")));
  FLYBALL_ASSIGN(made.max_loss_fraction, optional_number(field(event.detail, "max_loss_fraction")));
  return made;
}

std::vector<series::Event> decision_events(const loop::DecisionRecord& record) {
  std::vector<series::Event> made;
  const std::string why = record.frozen.empty() ? "asked " + record.proposal.reason : "frozen " + record.frozen;
  made.push_back(make_event(record.wall, "decision", {}, static_cast<double>(record.number),
                            fmt::format("observed={:08x} {}", crc_of(record.observation), why)));
  for (const GpuProposal& wish : record.proposal.gpus) {
    if (wish.power_limit)
      made.push_back(make_event(record.wall, "wish", wish.device, (*wish.power_limit).watts().value(), "power_limit"));
    if (wish.locked_clocks) {
      made.push_back(
          make_event(record.wall, "wish", wish.device, 0,
                     fmt::format("locked_clocks low_hz={} high_hz={}", format_exact((*wish.locked_clocks).low.value()),
                                 format_exact((*wish.locked_clocks).high.value()))));
    }
    if (wish.unlock_clocks) made.push_back(make_event(record.wall, "wish", wish.device, 0, "unlock_clocks"));
  }
  return made;
}

std::vector<series::Event> write_events(const loop::DecisionRecord& record) {
  std::vector<series::Event> made;
  made.reserve(record.writes.size());
  for (const guard::WriteOutcome& w : record.writes) {
    made.push_back(make_event(
        record.wall, "limit_write", w.device, w.asked.watts().value(),
        fmt::format("state={} accepted_mw={} enforced_mw={} reason={}", to_string(w.state), w.accepted.value(),
                    w.enforced ? std::to_string((*w.enforced).value()) : "none", w.reason)));
  }
  return made;
}

Result<guard::WriteOutcome> parse_write_event(const series::Event& event) {
  using guard::WriteState;
  guard::WriteOutcome made;
  made.device = event.device;
  made.asked = Milliwatts::from(Watts(event.value));
  const std::string_view state = field(event.detail, "state");
  bool known = false;
  for (const WriteState each :
       {WriteState::applied, WriteState::unchanged, WriteState::deferred, WriteState::refused, WriteState::failed}) {
    if (to_string(each) == state) made.state = each, known = true;
  }
  if (!known) return fail(ErrorCode::input, fmt::format("'{}' is no outcome of a write", state.substr(0, 40)));
  FLYBALL_ASSIGN(const std::int64_t accepted, parse_int(field(event.detail, "accepted_mw")));
  made.accepted = Milliwatts(accepted);
  if (const std::string_view enforced = field(event.detail, "enforced_mw"); enforced != "none") {
    FLYBALL_ASSIGN(const std::int64_t milliwatts, parse_int(enforced));
    made.enforced = Milliwatts(milliwatts);
  }
  made.reason = field(event.detail, "reason", true);
  return made;
}

Result<std::pair<Milliwatts, Milliwatts>> parse_range_event(const series::Event& event) {
  FLYBALL_ASSIGN(const std::int64_t low, parse_int(field(event.detail, "minimum_mw")));
  FLYBALL_ASSIGN(const std::int64_t high, parse_int(field(event.detail, "maximum_mw")));
  if (low < 0 || low > high)
    return fail(ErrorCode::input, fmt::format("a range of {} mW to {} mW is none", low, high), event.device.text());
  return std::pair(Milliwatts(low), Milliwatts(high));
}

RunRecorder::RunRecorder(Driver& driver, loop::ProgressSource& progress, const Clock& clock,
                         series::RecordingWriter& writer, std::pair<MonoTime, WallTime> anchor)
    : driver_(driver),
      progress_(progress),
      clock_(clock),
      writer_(writer),
      anchor_(anchor),
      log_(writer, driver.name()),
      flushed_(clock.now()) {}

void RunRecorder::note(const Result<>& done) {
  if (!done && failure_.empty()) failure_ = done.error().message();
}

void RunRecorder::event(const series::Event& event) { note(writer_.event(when(), event)); }

void RunRecorder::flush_every(Seconds period) {
  if (clock_.now() - flushed_ < period) return;
  flushed_ = clock_.now();
  note(writer_.flush());
}

WallTime RunRecorder::wall_at(MonoTime at) const {
  return WallTime(anchor_.second.nanoseconds() + at.nanoseconds() - anchor_.first.nanoseconds());
}

void RunRecorder::polled(MonoTime at, const Sample<WorkloadProgress>& shown) {
  if (!polled_) {
    polls_series_ = writer_.begin_series({DeviceId::of("run"), Signal::other, Scope::unknown, kPollsSource});
  }
  polled_ = at;
  const auto tokens = shown ? static_cast<double>(shown.value.tokens) : 0.0;
  note(writer_.point(polls_series_, at, tokens, shown.status));
  flush_every(kFlushLive);
}

void RunRecorder::objective(const Objective& o) {
  event({{},
         "objective",
         {},
         {},
         0,
         fmt::format("alpha={} max_loss_fraction={}", number_or_none(o.alpha), number_or_none(o.max_loss_fraction))});
}

void RunRecorder::lease(const std::string& what) { event({{}, "lease", {}, {}, what == "given" ? 1.0 : 0.0, what}); }

void RunRecorder::begin(const RecordedPolicy& policy) {
  event(policy_event(policy));
  event({{}, "run_start", {}, {}, 0, {}});
}

Result<GpuReading> RunRecorder::read(const DeviceId& device) {
  auto reading = driver_.read(device);
  if (reading) {
    log_.reading(*reading);
  } else {
    log_.failed(device, clock_.now());
  }
  return reading;
}

Result<PowerLimits> RunRecorder::limits(const DeviceId& device) {
  auto limits = driver_.limits(device);
  if (!limits) return limits;
  log_.range(device, *limits, when());
  // A policy that must hold something from the start writes before the first reading.
  if (limits->enforced && found_.insert(device).second) {
    event({wall_at(when()), "limit_found", device, {}, (*limits->enforced).watts().value(), {}});
  }
  return limits;
}

Sample<WorkloadProgress> RunRecorder::progress() {
  const auto progress = progress_.progress();
  log_.progress(progress, clock_.now());
  return progress;
}

Sample<Seconds> RunRecorder::waited(const DeviceId& device) {
  const auto waited = progress_.waited(device);
  log_.waited(device, waited);
  return waited;
}

void RunRecorder::decided(const loop::DecisionRecord& record) {
  for (const series::Event& e : decision_events(record)) event(e);
  for (const series::Event& e : write_events(record)) event(e);
  flush_every(kFlushEvery);
}

void RunRecorder::end(const std::string& reason) {
  event({{}, "run_stop", {}, {}, 0, {}});
  note(writer_.close(when(), reason));
}

}  // namespace flyball::control
