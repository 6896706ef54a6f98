#pragma once
// Everything that can be set about the twin, with its source. Each field is a key for `--set` ("gpu.idle_power=60W").

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace flyball::twin {

// Sources named below:
//   [sosp24]   stage times and energies by locked clock, A100-SXM, ml-energy/zeus branch kronos (fitted by us)
//   [yang24]   Yang, Adamek, Armour: "Part-time Power Measurements", arXiv:2312.02741
//   [mlperf]   node power of MLPerf Training v4.0, 8-H100 nodes
//   [acme]     InternLM/AcmeTrace, distributions of GPU power and temperature
//   [board]    constraints as nvidia-smi prints them for the board
//   [measures] the noise that simulated runs are to have, and the range of wait power
//   [chosen]   no source: a plausible value; vary it before trusting a result that depends on it
// The source of each key is also in `list_parameters`.

struct GpuParameters {
  std::string name = "NVIDIA A100-SXM4-80GB";
  Watts minimum_limit{100};                     // [board]
  Watts maximum_limit{400};                     // [board]
  Watts default_limit{400};                     // [board]
  Hertz minimum_clock{210e6};                   // [board]
  Hertz maximum_clock{1410e6};                  // [board]
  Hertz memory_clock{1593e6};                   // [board]
  std::uint64_t memory_bytes = 85'899'345'920;  // [board]

  // Busy power at clock fraction x: idle + (full − idle) · (s + (1 − s) · x · v(x)²),
  // v(x) = max(voltage_floor, 1 − voltage_slope · (1 − x)), all at reference_temperature.
  Watts idle_power{62};               // [acme] lower mode of GPU power
  Watts full_power{480};              // [sosp24] at the highest clock, activity 1; the default limit binds before
  double clock_free_fraction = 0.05;  // [sosp24] s: memory and uncore do not follow the SM clock
  double voltage_floor = 0.79;        // [sosp24]
  double voltage_slope = 1.1;         // [sosp24]
  double board_power_sd = 0.02;       // [mlperf] spread of like nodes under like load

  // Temperature: first-order lag towards inlet + resistance · power; leakage is linear around the reference.
  Celsius inlet_temperature{30};      // [chosen]
  double thermal_resistance = 0.085;  // K/W at full fan; [acme] 60–70 °C near full power
  Seconds thermal_time{45};           // [chosen] heat sink of about 500 J/K
  double leakage_per_kelvin = 0.15;   // W/K; [chosen]
  Celsius reference_temperature{55};  // [acme] median of a busy GPU
  Celsius slowdown_temperature{87};   // [board]
  Celsius shutdown_temperature{92};   // [board]
  bool has_fan = false;               // module boards have none
  double fan_resistance_gain = 0.8;   // resistance at fan 0 = (1 + gain) · resistance; [chosen]

  // How a changed limit takes hold.
  Seconds settle_time{0.3};           // first-order; [chosen] a limit write is felt within a second
  double overshoot_fraction = 0;      // of a step down, upward, at once; some boards. [chosen]
  Seconds overshoot_time{2};          // how long that fades
  double brake_clock_fraction = 0.5;  // clock under the hardware power brake; [chosen]

  // What the sensor shows.
  Seconds sensor_period{0.1};          // [yang24] refresh of A100 and H100
  double sensor_look_fraction = 0.25;  // [yang24] share of the period that is looked at
  Seconds sensor_average{0};           // trailing mean of the default field: 0 on GA100, 1 s on later chips; [yang24]
  double sensor_gain_sd = 0.015;       // per board; [yang24] within ±5 %
  double counter_gain_sd = 0.005;      // of the energy counter; [chosen]
  Joules counter_resolution{0.001};    // mJ, the unit of the call
  bool has_energy_counter = true;      // false for parts older than Volta
  bool has_instant_power = true;       // a field of its own for it; false for drivers without
};

/// A synchronous job. A step is a graph of parts, each with its own clock: the pipeline fills (one hop a stage), all
/// ranks compute, it drains, they exchange, a memory-bound part ends it. Each part ends with its slowest rank; who is
/// done earlier waits. Fractions are of `step_time` and sum to at most 0.95; computing takes what they leave.
struct JobParameters {
  double tokens_per_step = 1'048'576;
  Seconds step_time{2.0};                // at full clocks, without noise
  double compute_share = 0.92;           // of compute time that follows the SM clock; [sosp24]
  double activity_fraction = 0.95;       // of full power while computing
  double exposed_wait_fraction = 0.05;   // of the step: exchange that nothing hides
  double absorbable_wait_fraction = 0;   // of the step: wait that slower compute may use for nothing
  double wait_power_fraction = 0.4;      // of busy power while waiting; [measures] 0.2–0.5
  double hung_power_fraction = 1.0 / 7;  // of busy power, in a collective that hangs; field reports
  double memory_fraction = 0;            // of the step: bound by memory, as an optimizer's update is
  double memory_activity_fraction = 0.7;
  double memory_compute_share = 0.1;

  // Pipeline: rank i works in stage i mod stages. Of the computing time (stages − 1) / (microbatches + stages − 1) is
  // bubble: rank s waits s hops at both ends and the rest, until its share is 1 / (that + 1), in the middle.
  std::uint64_t pipeline_stages = 1;
  std::uint64_t microbatches = 32;  // of a step; at least stages − 1
  double forward_fraction = 0.35;   // of a microbatch's time; [sosp24]

  // Stragglers.
  double rank_work_sd = 0;        // spread of work over the ranks, constant in time; slack for all but the slowest
  double rank_jitter_sd = 0;      // spread of a rank's work from step to step; the step grows by its expected maximum
  double straggler_fraction = 0;  // rank 0 has so much more work than the others, which is their slack
  Seconds stall_interval{0};      // mean time between stalls, in which all wait; 0 = never
  Seconds stall_time{10};

  double throughput_noise_sd = 0.003;  // per 10 s, white; [measures] 0.003 or 0.01
  double drift_sd = 0.005;             // slow drift of throughput (OU); [measures]
  Seconds drift_time{3600};            // [measures]
  std::uint64_t evaluation_every = 0;  // steps; 0 = never
  Seconds evaluation_time{20};         // at full clocks
  double evaluation_activity_fraction = 0.6;
  double evaluation_compute_share = 0.6;
  std::uint64_t checkpoint_every = 0;  // steps; 0 = never
  Seconds checkpoint_interval{0};      // the first step end after so much time; 0 = never
  Seconds checkpoint_time{15};         // storage decides, not the clock
  double checkpoint_activity_fraction = 0.08;
  Seconds startup_time{0};             // before the first step
  std::uint64_t stop_after_steps = 0;  // 0 = never: idle from then on
};

/// What stands around the GPUs of one node and how its meters see them; see node.h. Not part of what a policy sees.
struct NodeParameters {
  std::uint64_t gpus = 8;
  Watts other_power{1500};        // fans, processors, memory, network; [mlperf] fitted
  double other_power_sd = 0.035;  // between nodes; [mlperf] like nodes under like load
  // Slow wander of a node's power (OU), its own and one shared by all: fans, temperatures, congestion.
  Watts wander_power{0};         // sd; [mlperf] fitted, step means of the AC meter
  Watts common_wander_power{0};  // sd, of each node; [mlperf] fitted
  Seconds wander_time{40};       // [mlperf] correlation from step to step
  // Power swings faster than a tick, peak to peak around its mean: with each microbatch, and between the buckets of the
  // update. The same on all nodes of the job, for they work in step.
  Watts ripple_power{0};         // [mlperf] lines at 4, 8 and 12 Hz
  Watts update_ripple_power{0};  // [mlperf] 3.3 to 6.9 kW within the second between two steps
  Seconds ripple_period{0.25};   // [mlperf] the lowest of those lines
  // The DC meter reads the moment, the AC meter a mean over its lag from a register that may be old.
  Seconds sample_period{2.00524};  // [mlperf] mean distance of the stamps
  Seconds sample_jitter{0.03};     // sd of a stamp; [mlperf]
  double together_fraction = 0;    // of the nodes are logged at the same instants, the others spread; [mlperf] fitted
  double dc_gain = 1;
  double ac_gain = 1;   // supply losses
  Seconds ac_lag{0.7};  // first-order; [mlperf] fitted
  Seconds ac_age{1};    // up to; [mlperf] fitted
};

struct MachineParameters {
  std::string preset = "parametric";  ///< or a measured clock curve, see clock_preset.h
  GpuParameters gpu;
  JobParameters job;
  NodeParameters node;
  std::uint64_t gpus = 1;
  std::uint64_t seed = 1;
  Seconds tick{0.1};
  double speed = 1;  ///< of job progress and temperature only; energy and sensors keep real seconds
};

/// "a100-sxm4-80gb", "a100-sxm4-80gb-500w", "a100-pcie-80gb", "h100-sxm5-80gb", "v100-pcie-16gb".
Result<GpuParameters> gpu_preset(std::string_view name);
std::vector<std::string> gpu_preset_names();

struct ParameterInfo {
  std::string key;     ///< "gpu.idle_power"
  std::string value;   ///< as `set_parameter` takes it
  std::string source;  ///< of the default: "sosp24", "chosen", …; see above
};
std::vector<ParameterInfo> list_parameters(const MachineParameters& parameters);
/// The dotted key of a name: itself, "wait_power_fraction" without its group, or one of the short names with a unit
/// ("step_s", "checkpoint_every_s", "noise_fraction", "drift_fraction", …).
Result<std::string> parameter_key(std::string_view name);
/// "gpu.idle_power", "60W", or any name that parameter_key knows. An unknown key is an error that names the known ones;
/// values carry their units.
Result<> set_parameter(MachineParameters& parameters, std::string_view key, std::string_view value);
/// Refuses what has no physics: a floor above the ceiling, negative times, fractions outside 0..1.
Result<> check(const MachineParameters& parameters);

}  // namespace flyball::twin
