#include "twin/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "twin/clock_preset.h"
#include "twin/parameter_keys.h"
#include "twin/parameter_text.h"

namespace flyball::twin {

namespace {

void check_gpu(const GpuParameters& p, Complaints& c) {
  c.between("gpu.minimum_limit", p.minimum_limit, Watts(1), p.maximum_limit);
  c.between("gpu.maximum_limit", p.maximum_limit, Watts(1), Watts(1e5));
  c.between("gpu.default_limit", p.default_limit, p.minimum_limit, p.maximum_limit);
  c.between("gpu.minimum_clock", p.minimum_clock, Hertz(1e6), p.maximum_clock * 0.99);
  c.between("gpu.maximum_clock", p.maximum_clock, Hertz(2e6), Hertz(1e11));
  c.between("gpu.idle_power", p.idle_power, Watts(0), p.full_power * 0.99);
  c.between("gpu.full_power", p.full_power, Watts(1), Watts(1e5));
  c.between("gpu.clock_free_fraction", p.clock_free_fraction, 0.0, 0.95);
  c.between("gpu.voltage_floor", p.voltage_floor, 0.1, 1.0);
  c.between("gpu.voltage_slope", p.voltage_slope, 0.0, 3.0);
  c.between("gpu.board_power_sd", p.board_power_sd, 0.0, 0.2);
  c.between("gpu.thermal_resistance", p.thermal_resistance, 0.0, 10.0);
  c.between("gpu.thermal_time", p.thermal_time, Seconds(0), Seconds(1e5));
  c.between("gpu.leakage_per_kelvin", p.leakage_per_kelvin, 0.0, 10.0);
  c.between("gpu.fan_resistance_gain", p.fan_resistance_gain, 0.0, 100.0);
  c.between("gpu.settle_time", p.settle_time, Seconds(0), Seconds(600));
  c.between("gpu.overshoot_fraction", p.overshoot_fraction, 0.0, 2.0);
  c.between("gpu.overshoot_time", p.overshoot_time, Seconds(0), Seconds(600));
  c.between("gpu.brake_clock_fraction", p.brake_clock_fraction, 0.01, 1.0);
  c.between("gpu.sensor_period", p.sensor_period, Seconds(0.001), Seconds(60));
  c.between("gpu.sensor_look_fraction", p.sensor_look_fraction, 0.01, 1.0);
  c.between("gpu.sensor_average", p.sensor_average, Seconds(0), p.sensor_period * 128);
  c.between("gpu.sensor_gain_sd", p.sensor_gain_sd, 0.0, 0.2);
  c.between("gpu.counter_gain_sd", p.counter_gain_sd, 0.0, 0.2);
  c.between("gpu.counter_resolution", p.counter_resolution, Joules(0.001), Joules(1e4));
}

void check_job(const JobParameters& p, Complaints& c) {
  c.between("job.tokens_per_step", p.tokens_per_step, 1.0, 1e12);
  c.between("job.step_time", p.step_time, Seconds(0.001), Seconds(1e5));
  c.fraction("job.compute_share", p.compute_share);
  c.between("job.activity_fraction", p.activity_fraction, 0.01, 1.5);
  c.between("job.exposed_wait_fraction", p.exposed_wait_fraction, 0.0, 0.9);
  // Of the step that the others leave; rounded, so that the range reads as it is meant.
  const auto rest = [](double taken) { return std::clamp(std::round((0.95 - taken) * 1e9) / 1e9, 0.0, 0.95); };
  c.between("job.absorbable_wait_fraction", p.absorbable_wait_fraction, 0.0, rest(p.exposed_wait_fraction));
  c.fraction("job.wait_power_fraction", p.wait_power_fraction);
  c.fraction("job.hung_power_fraction", p.hung_power_fraction);
  c.between("job.memory_fraction", p.memory_fraction, 0.0, rest(p.exposed_wait_fraction + p.absorbable_wait_fraction));
  c.between("job.memory_activity_fraction", p.memory_activity_fraction, 0.0, 1.5);
  c.fraction("job.memory_compute_share", p.memory_compute_share);
  c.between<std::uint64_t>("job.microbatches", p.microbatches, p.pipeline_stages > 1 ? p.pipeline_stages - 1 : 1,
                           100'000);
  c.between("job.forward_fraction", p.forward_fraction, 0.05, 0.95);
  c.between("job.rank_work_sd", p.rank_work_sd, 0.0, 0.5);
  c.between("job.rank_jitter_sd", p.rank_jitter_sd, 0.0, 0.3);
  c.between("job.straggler_fraction", p.straggler_fraction, 0.0, 4.0);
  c.between("job.stall_interval", p.stall_interval, Seconds(0), Seconds(1e8));
  c.between("job.stall_time", p.stall_time, Seconds(0.001), Seconds(1e5));
  c.between("job.throughput_noise_sd", p.throughput_noise_sd, 0.0, 0.2);
  c.between("job.drift_sd", p.drift_sd, 0.0, 0.2);
  c.between("job.drift_time", p.drift_time, Seconds(1), Seconds(1e7));
  c.between("job.evaluation_time", p.evaluation_time, Seconds(0.001), Seconds(1e5));
  c.between("job.evaluation_activity_fraction", p.evaluation_activity_fraction, 0.0, 1.5);
  c.fraction("job.evaluation_compute_share", p.evaluation_compute_share);
  c.between("job.checkpoint_interval", p.checkpoint_interval, Seconds(0), Seconds(1e8));
  c.between("job.checkpoint_time", p.checkpoint_time, Seconds(0.001), Seconds(1e5));
  c.between("job.checkpoint_activity_fraction", p.checkpoint_activity_fraction, 0.0, 1.5);
  c.between("job.startup_time", p.startup_time, Seconds(0), Seconds(1e6));
}

void check_node(const NodeParameters& p, Complaints& c) {
  c.between<std::uint64_t>("node.gpus", p.gpus, 1, 1'000);
  c.between("node.other_power", p.other_power, Watts(0), Watts(1e5));
  c.between("node.other_power_sd", p.other_power_sd, 0.0, 0.5);
  c.between("node.wander_power", p.wander_power, Watts(0), p.other_power * 0.2);
  c.between("node.common_wander_power", p.common_wander_power, Watts(0), p.other_power * 0.2);
  c.between("node.wander_time", p.wander_time, Seconds(1), Seconds(1e6));
  c.between("node.ripple_power", p.ripple_power, Watts(0), Watts(1e5));
  c.between("node.ripple_period", p.ripple_period, Seconds(0.001), Seconds(60));
  c.between("node.update_ripple_power", p.update_ripple_power, Watts(0), Watts(1e5));
  c.between("node.sample_period", p.sample_period, Seconds(0.1), Seconds(3600));
  c.between("node.sample_jitter", p.sample_jitter, Seconds(0), p.sample_period * 0.1);
  c.fraction("node.together_fraction", p.together_fraction);
  c.between("node.dc_gain", p.dc_gain, 0.5, 2.0);
  c.between("node.ac_gain", p.ac_gain, 0.5, 2.0);
  c.between("node.ac_lag", p.ac_lag, Seconds(0), Seconds(600));
  c.between("node.ac_age", p.ac_age, Seconds(0), p.sample_period);
}

/// Names without their group, and the units that scripts write into a name: "checkpoint_every_s=600".
struct ShortName {
  std::string_view name, key;
  bool seconds = false;
};
constexpr ShortName kShortNames[] = {
    {"step_s", "job.step_time", true},
    {"noise_fraction", "job.throughput_noise_sd"},
    {"drift_fraction", "job.drift_sd"},
    {"drift_s", "job.drift_time", true},
    {"checkpoint_every_s", "job.checkpoint_interval", true},
    {"checkpoint_s", "job.checkpoint_time", true},
    {"evaluation_s", "job.evaluation_time", true},
    {"stall_every_s", "job.stall_interval", true},
    {"stall_s", "job.stall_time", true},
    {"startup_s", "job.startup_time", true},
    {"tick_s", "tick", true},
};

bool has_key(std::string_view key) {
  bool known = false;
  const MachineParameters parameters;
  visit_all(parameters, [&](std::string_view each, const auto&, const char*) { known = known || each == key; });
  return known;
}

const ShortName* short_name(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kShortNames), std::end(kShortNames),
                                         [name](const ShortName& each) { return each.name == name; });
  return found == std::end(kShortNames) ? nullptr : found;
}

}  // namespace

std::vector<ParameterInfo> list_parameters(const MachineParameters& parameters) {
  std::vector<ParameterInfo> all;
  visit_all(parameters, [&all](const char* key, const auto& value, const char* source) {
    all.push_back({key, show(value), source});
  });
  return all;
}

Result<std::string> parameter_key(std::string_view name) {
  if (const ShortName* known = short_name(name)) return std::string(known->key);
  for (const std::string_view group : {"", "job.", "gpu.", "node."}) {
    std::string key = std::string(group) + std::string(name);
    if (has_key(key)) return key;
  }
  std::string names;
  for (const ParameterInfo& each : list_parameters({})) names += each.key + ' ';
  for (const ShortName& each : kShortNames) names += std::string(each.name) + ' ';
  names.pop_back();
  return fail(ErrorCode::input, fmt::format("there is no parameter '{}'", name.substr(0, 60)), {},
              "use one of: " + names);
}

Result<> set_parameter(MachineParameters& parameters, std::string_view name, std::string_view text) {
  FLYBALL_ASSIGN(const std::string key, parameter_key(name));
  const ShortName* known = short_name(name);
  const bool bare = known != nullptr && known->seconds && parse_double(trim(text));
  const std::string value = std::string(trim(text)) + (bare ? "s" : "");
  Result<> done;
  visit_all(parameters, [&](std::string_view each, auto& field, const char*) {
    if (each == key) done = read(value, field);
  });
  if (done) return {};
  Error error = done.error();
  error.where = key;
  return fail(std::move(error));
}

Result<> check(const MachineParameters& parameters) {
  FLYBALL_TRY(clock_preset(parameters.preset));
  Complaints c;
  check_gpu(parameters.gpu, c);
  check_job(parameters.job, c);
  check_node(parameters.node, c);
  c.between<std::uint64_t>("gpus", parameters.gpus, 1, 100'000);
  c.between("tick", parameters.tick, Seconds(0.001), Seconds(10));
  c.between("speed", parameters.speed, 1.0, 50.0);
  c.between<std::uint64_t>("job.pipeline_stages", parameters.job.pipeline_stages, 1, parameters.gpus);
  return c.result();
}

}  // namespace flyball::twin
