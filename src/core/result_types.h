#pragma once
// What comes out: accounts, verdicts, findings, and what a screen shows. Reports read these and nothing else.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/stats.h"
#include "base/units.h"
#include "core/control.h"
#include "core/device.h"
#include "core/reading.h"

namespace flyball {

/// Prices and carbon, as the operator states them.
struct Rates {
  double price_per_kwh = 0;     ///< money per kWh
  double carbon_g_per_kwh = 0;  ///< gCO2e per kWh
  double gpu_hour_price = 0;    ///< money per GPU-hour of compute lost or gained
  Watts other_power_per_gpu;    ///< what a node draws beside its GPUs, a GPU
  std::string currency = "EUR";
};

/// Energy with what was made of it; the one accounting type. Everything derived is computed, never stored.
struct Account {
  Joules energy;
  Seconds duration;
  double tokens = 0;
  double coverage_fraction = 1;  ///< share of the duration with a measured value; holes are not filled
  Scope scope = Scope::unknown;
  std::string method;  ///< "counter", "trapezoid of power_average", …
  double cost = 0;     ///< by constant or hourly price
  double carbon_g = 0;

  /// Over the time that was measured: a hole is in no mean.
  Watts mean_power() const {
    const Seconds seen = duration * coverage_fraction;
    return seen > Seconds(0) ? energy / seen : Watts(0);
  }
  /// 0 when nothing was used.
  double tokens_per_mwh() const { return energy > Joules(0) ? tokens / (energy.value() / 3.6e9) : 0; }
  /// 0 when nothing was made.
  double wh_per_1000_tokens() const { return tokens > 0 ? energy.value() / kJoulesPerWattHour / (tokens / 1000) : 0; }
};

enum class Decision : std::uint8_t { yes, no, not_sure };
std::string_view to_string(Decision decision);

/// The result of an authority probe of one lever.
struct Verdict {
  Lever lever = Lever::power_limit;
  Decision verdict = Decision::not_sure;
  Estimate power_swing_fraction;
  Estimate throughput_swing_fraction;
  std::string reason;
  WallTime made;
  std::string valid_for;  ///< topology, sharding and batch it was made under
};

enum class Severity : std::uint8_t { info, warning, alarm };
std::string_view to_string(Severity severity);

/// Something a person should know: what, about which device, since when, with which evidence, and what to do.
struct Finding {
  Severity severity = Severity::info;
  std::string code;  ///< stable, "limit.foreign_writer"
  DeviceId device;   ///< empty = the whole machine
  std::string what;
  std::string remedy;
  WallTime since;
  double confidence_fraction = 1;
};

/// What a switchback measured: control against the limits as found, in randomised blocks of the same run
/// (doc/switchback.md).
struct SwitchbackResult {
  std::string verdict;  ///< "saves", "costs", "no_difference", "too_noisy"
  std::string reason;   ///< one sentence
  /// While control held, against the limits as found; empty = too noisy to claim.
  std::optional<Estimate> saved_fraction, loss_fraction;
  /// Over the whole run, in which control did not hold all the time.
  std::optional<Estimate> saved_run_fraction, loss_run_fraction;
  double half_width_fraction = 0;                         ///< of the saving, claimed or not; 0 = not known
  double p_value = 1;                                     ///< of no effect on energy per token, two-sided
  Seconds block;                                          ///< 0 = there were no blocks
  std::uint64_t blocks_control = 0, blocks_original = 0;  ///< with a measurement
  double control_fraction = 0;                            ///< of the run's time
  double discarded_fraction = 0;                          ///< of the blocks' time: carry-over, other phases, holes
  Seconds needed;  ///< about how long a run would have to be; 0 = not known or long enough
};

/// What a saving is worth, beside energy per token of the boards (formulas: series/accounting.h). The ends of the
/// intervals are taken at the worse and the better ends of saved and lost together.
struct Worth {
  Estimate power_reduction_fraction;  ///< 1 − mean power / mean power at the limits found, boards
  Estimate node_saved_fraction;       ///< energy per token, with what a node draws beside its GPUs
  Estimate fixed_feed_gain_fraction;  ///< more tokens per second from one feed, filled up with more such nodes
  Estimate energy_saved_kwh;          ///< for the tokens that were made
  std::optional<Estimate> net_money;  ///< energy saved less compute time lost; empty = no price of energy is stated
  std::optional<Estimate> carbon_saved_g;
};

/// What became of one GPU's limit in a run.
struct GpuControl {
  DeviceId device;
  Sample<Milliwatts> found;         ///< in force at the start
  Sample<Milliwatts> lowest, mean;  ///< in force at the ends of intervals
  Sample<Hertz> lowest_lock;        ///< lowest upper end that its clocks were locked to; absent = never locked
  std::uint64_t writes = 0;         ///< that changed it
  std::uint64_t refused = 0;        ///< or failed
  std::string after;                ///< "as found", "left to another writer", "NOT as found"; empty = never written
};

/// A run that held a budget for the limits of all its GPUs together.
struct BudgetHeld {
  Watts limit;
  Watts highest_limits;  ///< sum of the limits in force, at the ends of intervals
  Watts highest_power;   ///< mean over an interval, boards
};

/// The outcome of one run of the loop, as `flyball run` prints it.
struct RunResult {
  std::string plant;  ///< "twin pretrain-1 (preset v100-…)", "nvml", "recording …"
  std::string policy;
  std::uint64_t seed = 0;
  WallTime started;
  Account account;                        ///< the run
  std::optional<Account> counterfactual;  ///< same seed, limits as found; only where it was really run
  std::optional<Estimate> saved_fraction;
  std::optional<Estimate> loss_fraction;
  std::string saved_basis;  ///< how the two were obtained
  std::optional<SwitchbackResult> switchback;
  std::optional<BudgetHeld> budget;
  std::optional<Worth> worth;  ///< of what was saved, where that is known
  std::vector<GpuControl> gpus;
  std::vector<Finding> findings;
  std::uint64_t writes = 0;
  std::uint64_t writes_refused = 0;
  bool restored = false;  ///< all limits found before are back, read and compared
};

/// One GPU on a screen.
struct GpuView {
  DeviceInfo info;
  GpuReading last;
  Sample<Milliwatts> asked;
  Sample<Seconds> age;  ///< of the last good reading
};

/// Everything a screen shows, at one instant.
struct StateView {
  WallTime at;
  std::string mode;  ///< "observe", "canary", "control", "degraded"
  std::string policy;
  Phase phase = Phase::unknown;
  std::vector<GpuView> gpus;
  std::vector<Finding> findings;
  Account account;
};

}  // namespace flyball
