#pragma once
// The keys of all parameters with their sources, in the order in which they are listed. For parameters.cc alone.

#include "twin/parameters.h"

namespace flyball::twin {

template <class Gpu, class Visit>
void visit_gpu(Gpu& p, Visit visit) {
  visit("gpu.name", p.name, "board");
  visit("gpu.minimum_limit", p.minimum_limit, "board");
  visit("gpu.maximum_limit", p.maximum_limit, "board");
  visit("gpu.default_limit", p.default_limit, "board");
  visit("gpu.minimum_clock", p.minimum_clock, "board");
  visit("gpu.maximum_clock", p.maximum_clock, "board");
  visit("gpu.memory_clock", p.memory_clock, "board");
  visit("gpu.memory_bytes", p.memory_bytes, "board");
  visit("gpu.idle_power", p.idle_power, "acme");
  visit("gpu.full_power", p.full_power, "sosp24");
  visit("gpu.clock_free_fraction", p.clock_free_fraction, "sosp24");
  visit("gpu.voltage_floor", p.voltage_floor, "sosp24");
  visit("gpu.voltage_slope", p.voltage_slope, "sosp24");
  visit("gpu.board_power_sd", p.board_power_sd, "mlperf");
  visit("gpu.inlet_temperature", p.inlet_temperature, "chosen");
  visit("gpu.thermal_resistance", p.thermal_resistance, "acme");
  visit("gpu.thermal_time", p.thermal_time, "chosen");
  visit("gpu.leakage_per_kelvin", p.leakage_per_kelvin, "chosen");
  visit("gpu.reference_temperature", p.reference_temperature, "acme");
  visit("gpu.slowdown_temperature", p.slowdown_temperature, "board");
  visit("gpu.shutdown_temperature", p.shutdown_temperature, "board");
  visit("gpu.has_fan", p.has_fan, "board");
  visit("gpu.fan_resistance_gain", p.fan_resistance_gain, "chosen");
  visit("gpu.settle_time", p.settle_time, "chosen");
  visit("gpu.overshoot_fraction", p.overshoot_fraction, "chosen");
  visit("gpu.overshoot_time", p.overshoot_time, "chosen");
  visit("gpu.brake_clock_fraction", p.brake_clock_fraction, "chosen");
  visit("gpu.sensor_period", p.sensor_period, "yang24");
  visit("gpu.sensor_look_fraction", p.sensor_look_fraction, "yang24");
  visit("gpu.sensor_average", p.sensor_average, "yang24");
  visit("gpu.sensor_gain_sd", p.sensor_gain_sd, "yang24");
  visit("gpu.counter_gain_sd", p.counter_gain_sd, "chosen");
  visit("gpu.counter_resolution", p.counter_resolution, "board");
  visit("gpu.has_energy_counter", p.has_energy_counter, "board");
  visit("gpu.has_instant_power", p.has_instant_power, "board");
}

template <class Job, class Visit>
void visit_job(Job& p, Visit visit) {
  visit("job.tokens_per_step", p.tokens_per_step, "chosen");
  visit("job.step_time", p.step_time, "chosen");
  visit("job.compute_share", p.compute_share, "sosp24");
  visit("job.activity_fraction", p.activity_fraction, "chosen");
  visit("job.exposed_wait_fraction", p.exposed_wait_fraction, "chosen");
  visit("job.absorbable_wait_fraction", p.absorbable_wait_fraction, "chosen");
  visit("job.wait_power_fraction", p.wait_power_fraction, "measures");
  visit("job.hung_power_fraction", p.hung_power_fraction, "field");
  visit("job.memory_fraction", p.memory_fraction, "chosen");
  visit("job.memory_activity_fraction", p.memory_activity_fraction, "chosen");
  visit("job.memory_compute_share", p.memory_compute_share, "chosen");
  visit("job.pipeline_stages", p.pipeline_stages, "chosen");
  visit("job.microbatches", p.microbatches, "chosen");
  visit("job.forward_fraction", p.forward_fraction, "sosp24");
  visit("job.rank_work_sd", p.rank_work_sd, "chosen");
  visit("job.rank_jitter_sd", p.rank_jitter_sd, "chosen");
  visit("job.straggler_fraction", p.straggler_fraction, "chosen");
  visit("job.stall_interval", p.stall_interval, "chosen");
  visit("job.stall_time", p.stall_time, "chosen");
  visit("job.throughput_noise_sd", p.throughput_noise_sd, "measures");
  visit("job.drift_sd", p.drift_sd, "measures");
  visit("job.drift_time", p.drift_time, "measures");
  visit("job.evaluation_every", p.evaluation_every, "chosen");
  visit("job.evaluation_time", p.evaluation_time, "chosen");
  visit("job.evaluation_activity_fraction", p.evaluation_activity_fraction, "chosen");
  visit("job.evaluation_compute_share", p.evaluation_compute_share, "chosen");
  visit("job.checkpoint_every", p.checkpoint_every, "chosen");
  visit("job.checkpoint_interval", p.checkpoint_interval, "chosen");
  visit("job.checkpoint_time", p.checkpoint_time, "chosen");
  visit("job.checkpoint_activity_fraction", p.checkpoint_activity_fraction, "chosen");
  visit("job.startup_time", p.startup_time, "chosen");
  visit("job.stop_after_steps", p.stop_after_steps, "chosen");
}

template <class Node, class Visit>
void visit_node(Node& p, Visit visit) {
  visit("node.gpus", p.gpus, "board");
  visit("node.other_power", p.other_power, "mlperf");
  visit("node.other_power_sd", p.other_power_sd, "mlperf");
  visit("node.wander_power", p.wander_power, "mlperf");
  visit("node.common_wander_power", p.common_wander_power, "mlperf");
  visit("node.wander_time", p.wander_time, "mlperf");
  visit("node.ripple_power", p.ripple_power, "mlperf");
  visit("node.update_ripple_power", p.update_ripple_power, "mlperf");
  visit("node.ripple_period", p.ripple_period, "mlperf");
  visit("node.sample_period", p.sample_period, "mlperf");
  visit("node.sample_jitter", p.sample_jitter, "mlperf");
  visit("node.together_fraction", p.together_fraction, "mlperf");
  visit("node.dc_gain", p.dc_gain, "mlperf");
  visit("node.ac_gain", p.ac_gain, "mlperf");
  visit("node.ac_lag", p.ac_lag, "mlperf");
  visit("node.ac_age", p.ac_age, "mlperf");
}

template <class Machine, class Visit>
void visit_all(Machine& p, Visit visit) {
  visit("preset", p.preset, "chosen");
  visit_gpu(p.gpu, visit);
  visit_job(p.job, visit);
  visit_node(p.node, visit);
  visit("gpus", p.gpus, "chosen");
  visit("seed", p.seed, "chosen");
  visit("tick", p.tick, "chosen");
  visit("speed", p.speed, "chosen");
}

}  // namespace flyball::twin
