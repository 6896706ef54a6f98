#include "evaluate/twin_plant.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "device/twin/twin_driver.h"

namespace flyball::evaluate {
namespace {

/// The energy counter holds between polls, and limits hold within a second.
constexpr Seconds kPoll{2};
constexpr Seconds kMeasured{3600};
/// A job's first steps are not like the others.
constexpr Seconds kSettled{120};
constexpr Milliwatts kStep{10'000};
constexpr std::int64_t kMostLimits = 40;
/// Of the highest clock: energy per token rises again below it, waits or not.
constexpr double kLowestClock = 0.6;
constexpr Hertz kClockStep{15e6};

class TwinPlant final : public Plant, public loop::ProgressSource {
 public:
  TwinPlant(twin::Machine machine, Clock& clock)
      : machine_(std::move(machine)), clock_(clock), driver_(machine_, clock) {
    for (const twin::Gpu& gpu : machine_.gpus()) ranks_.emplace(gpu.id(), ranks_.size());
  }
  bool clocks_unlocked() const override { return true; }
  Driver& driver() override { return driver_; }
  loop::ProgressSource& job() override { return *this; }
  Milliwatts limit() override {
    Milliwatts highest;
    for (const twin::Gpu& gpu : machine_.gpus()) highest = std::max(highest, gpu.requested_limit());
    return highest;
  }
  std::optional<Hertz> lock() override {
    std::optional<Hertz> highest;
    for (const twin::Gpu& gpu : machine_.gpus()) {
      if (!gpu.locked_clocks()) return std::nullopt;
      highest = std::max(highest.value_or(Hertz(0)), gpu.locked_clocks()->high);
    }
    return highest;
  }
  Joules energy() override {
    machine_.advance_to(clock_.now());
    return machine_.energy();
  }
  double tokens() override {
    machine_.advance_to(clock_.now());
    return machine_.job().exact_tokens();
  }
  Sample<WorkloadProgress> progress() override {
    machine_.advance_to(clock_.now());
    const twin::Job& job = machine_.job();
    return WorkloadProgress{job.last_step().ended, job.phase(), job.steps(), job.tokens()};
  }
  Sample<Seconds> waited(const DeviceId& device) override { return machine_.job().waited(ranks_.at(device)); }

 private:
  twin::Machine machine_;
  Clock& clock_;
  device::TwinDriver driver_;
  std::unordered_map<DeviceId, std::size_t> ranks_;
};

/// All boards at one limit, and under one lock if one is given.
Result<curve::Point> measure(const twin::Scenario& scenario, Milliwatts limit, std::optional<Hertz> lock = {}) {
  FLYBALL_ASSIGN(twin::Machine machine, scenario.build());
  for (twin::Gpu& gpu : machine.gpus()) {
    gpu.set_limit(limit);
    if (lock) gpu.lock_clocks({*lock, *lock});
  }
  machine.advance(kSettled);
  const double tokens = machine.job().exact_tokens();
  const Joules energy = machine.energy();
  machine.advance(kMeasured);
  const double made = machine.job().exact_tokens() - tokens;
  if (made <= 0) return fail(ErrorCode::input, "the job makes no progress", "scenario " + scenario.name);
  return curve::Point{limit, kMeasured / made * 1e6,
                      (machine.energy() - energy) / kMeasured / static_cast<double>(machine.gpus().size())};
}

/// Those that one lock for all boards can reach.
Result<> measure_by_clock(const twin::Scenario& scenario, const curve::Point& found, Subject& subject) {
  const Hertz top = scenario.parameters.gpu.maximum_clock;
  for (Hertz clock = top - kClockStep; clock >= top * kLowestClock; clock = clock - kClockStep) {
    FLYBALL_ASSIGN(const curve::Point point, measure(scenario, found.limit, clock));
    const double rate = found.time / point.time;
    subject.by_clock.push_back({point.power / found.power, rate, rate});
    subject.clocks.push_back(clock);
  }
  return {};
}

}  // namespace

Result<Subject> twin_subject(const twin::Scenario& scenario, std::uint64_t seed) {
  twin::Scenario fixed = scenario;
  fixed.parameters.seed = seed;
  const twin::GpuParameters& gpu = scenario.parameters.gpu;
  const Milliwatts highest = Milliwatts::from(gpu.default_limit), lowest = Milliwatts::from(gpu.minimum_limit);
  const std::int64_t range = (highest - lowest).value();
  const std::int64_t step = std::max(kStep.value(), range / kMostLimits);
  std::vector<curve::Point> points;
  for (std::int64_t limit = highest.value(); limit > lowest.value(); limit -= step) {
    FLYBALL_ASSIGN(const curve::Point point, measure(fixed, Milliwatts(limit)));
    points.push_back(point);
  }
  FLYBALL_ASSIGN(const curve::Point last, measure(fixed, lowest));
  points.push_back(last);
  FLYBALL_ASSIGN(curve::Curve truth, curve::Curve::monotone(points));
  Subject subject{scenario.plant(),
                  scenario.name,
                  std::move(truth),
                  scenario.hash(),
                  kPoll,
                  [scenario](std::uint64_t s, Clock& clock) -> Result<std::unique_ptr<Plant>> {
                    twin::Scenario seeded = scenario;
                    seeded.parameters.seed = s;
                    FLYBALL_ASSIGN(twin::Machine machine, seeded.build());
                    return std::make_unique<TwinPlant>(std::move(machine), clock);
                  }};
  FLYBALL_TRY(measure_by_clock(fixed, points.front(), subject));
  return subject;
}

}  // namespace flyball::evaluate
