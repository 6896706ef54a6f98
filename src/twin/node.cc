#include "twin/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace flyball::twin {

namespace {

// The dip of the ripple is narrow: half the time the power is within a quarter of its top. Mean of ((1 − cos) / 2)².
constexpr double kRippleMean = 0.375;

double dip(double phase) {
  const double half = (1 - std::cos(2 * std::numbers::pi * phase)) / 2;
  return half * half;
}

double decay(Seconds tick, Seconds time) { return time > Seconds(0) ? std::exp(-tick.value() / time.value()) : 0; }

Watts whole(double watts) { return Watts(std::round(std::max(0.0, watts))); }

}  // namespace

NodeMeters::NodeMeters(const Machine& machine)
    : parameters_(machine.parameters().node),
      keep_(decay(machine.parameters().tick, parameters_.ac_lag)),
      wander_keep_(decay(machine.parameters().tick, parameters_.wander_time)),
      common_random_(Random(machine.parameters().seed ^ 0x77616e64ULL)) {
  common_wander_ = parameters_.common_wander_power.value() * common_random_.normal();
  const std::size_t count = (machine.gpus().size() + parameters_.gpus - 1) / parameters_.gpus;
  // Streams by node, apart from those of the boards.
  const std::uint64_t seed = machine.parameters().seed ^ 0x6e6f6465ULL;
  const auto together =
      static_cast<std::size_t>(std::llround(parameters_.together_fraction * static_cast<double>(count)));
  const double spread = std::max(1.0, static_cast<double>(count - together));
  for (std::size_t i = 0; i < count; ++i) {
    Node node{.random = Random(seed).fork(i), .ac = {}, .samples = {}};
    node.other = parameters_.other_power.value() * std::max(0.0, 1 + parameters_.other_power_sd * node.random.normal());
    // Evenly spread, a random place in each stratum.
    const double place = i < together ? 0 : (static_cast<double>(i - together) + node.random.uniform()) / spread;
    node.next = parameters_.sample_period.value() * place;
    node.wander = parameters_.wander_power.value() * node.random.normal();
    node.filtered = node.other;
    plan(node);
    nodes_.push_back(std::move(node));
  }
}

void NodeMeters::plan(Node& node) {
  node.stamp = std::max(0.0, node.next + parameters_.sample_jitter.value() * node.random.normal());
  node.ac_due = node.stamp - parameters_.ac_age.value() * node.random.uniform();
  node.ac.reset();
  node.next += parameters_.sample_period.value();
}

double NodeMeters::ripple(const Machine& machine, double at, double busy) const {
  const Job& job = machine.job();
  const double phase = (at - job.last_step().ended.seconds()) / parameters_.ripple_period.value();
  const Phase part = job.step_part();
  double swing = 0;
  if (part == Phase::training) swing = parameters_.ripple_power.value() * busy;
  if (part == Phase::optimizer) swing = parameters_.update_ripple_power.value();
  return swing * (kRippleMean - dip(phase));
}

void NodeMeters::observe(const Machine& machine) {
  const double now = machine.now().seconds();
  const auto gpus = machine.gpus();
  std::size_t gpu = 0;
  const auto wander = [this](double& value, Watts sd, Random& random) {
    if (sd <= Watts(0)) return;
    value = wander_keep_ * value + std::sqrt(1 - wander_keep_ * wander_keep_) * sd.value() * random.normal();
  };
  wander(common_wander_, parameters_.common_wander_power, common_random_);
  for (Node& node : nodes_) {
    wander(node.wander, parameters_.wander_power, node.random);
    double power = node.other + node.wander + common_wander_;
    double busy = 0;
    const std::size_t end = std::min<std::size_t>(gpu + parameters_.gpus, gpus.size());
    const auto in_node = static_cast<double>(end - gpu);
    for (; gpu < end; ++gpu) {
      power += gpus[gpu].tick_power().value();
      busy += gpus[gpu].tick_busy_fraction() / in_node;
    }
    node.power = power;
    node.filtered = power + (node.filtered - power) * keep_;
    while (node.ac_due <= now) {
      if (!node.ac) node.ac = whole(node.filtered * parameters_.ac_gain);
      if (node.stamp > now) break;
      const double moment = power + ripple(machine, node.stamp, busy);
      node.samples.push_back({MonoTime(std::llround(node.stamp * 1e9)), *node.ac, whole(moment * parameters_.dc_gain)});
      plan(node);
    }
  }
}

series::Recording record_nodes(Machine& machine, Seconds duration, WallTime start, const std::string& run) {
  series::Recording made;
  NodeMeters meters(machine);
  const MonoTime begin = machine.now();
  const auto wall = [&](MonoTime t) { return start + (t - begin); };
  const auto event = [&](MonoTime at, const char* kind) { made.events.push_back({wall(at), kind, {}, run, 0, {}}); };
  event(begin, "run_start");
  Phase phase = machine.job().phase();
  while (machine.now() - begin < duration) {
    machine.advance(machine.parameters().tick);
    meters.observe(machine);
    for (const PhaseChange& change : machine.job().take_phase_changes()) {
      if (change.phase == Phase::evaluation) event(change.at, "eval_start");
      if (phase == Phase::evaluation) event(change.at, "eval_stop");
      phase = change.phase;
    }
  }
  event(machine.now(), "run_stop");
  for (std::size_t i = 0; i < meters.size(); ++i) {
    for (const Scope scope : {Scope::node_ac, Scope::node_dc}) {
      series::Series each{
          {DeviceId::of(fmt::format("{}/node-{}", run, i + 1)), Signal::power_average, scope, "twin node meter"}, {}};
      for (const NodeSample& sample : meters.samples(i)) {
        each.points.push_back({wall(sample.at), (scope == Scope::node_ac ? sample.ac : sample.dc).value(), Status::ok});
      }
      made.series.push_back(std::move(each));
    }
  }
  return made;
}

}  // namespace flyball::twin
