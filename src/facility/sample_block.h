#pragma once
// Samples of a building gathered into blocks of ten minutes: what is watched. A block is all that is kept of its
// samples, so that the same blocks in the same order make the same findings, also after a restart.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/facility.h"
#include "facility/phase_library.h"

namespace flyball::facility {

/// What a block holds one mean of, in base units.
enum class Quantity : std::uint8_t {
  utility,
  generated,
  discharged,
  ups_in,
  ups_out,
  voltage,
  voltage_least,  ///< not a mean
  it,
  racks,  ///< sum over all, only where all are known
  chillers,
  pumps,
  fans,
  chillers_on,
  fan_speed,
  pump_speed,
  supply,
  set_point,
  back,
  dry_bulb,
  wet_bulb,
  gpu_power,
  gpu_clock,
  gpu_temperature,
  gpu_throttled,
  ecc_rate,    ///< per second
  link_rate,   ///< per second
  on_battery,  ///< fraction of the time
  jobs,        ///< sum of the shares of all jobs
  starts,      ///< jobs that ran and began again, a block
  switches,    ///< chillers that came or went, a block
  // Scatter within the block, of a sample.
  it_sd,
  balance_sd,   ///< what comes in less what is used
  ups_sd,       ///< in less out
  delivery_sd,  ///< out of the UPS less `it`
  racks_sd,     ///< `racks` less `it`
  gpu_sd,       ///< logarithm of `it` over `gpu_power`
  same,         ///< the largest fraction of readings that repeat the one before, over the meters that follow the load
  // How far a meter's readings lie from the line through their neighbours, the middle one: its own noise.
  chillers_jitter,
  pumps_jitter,
  fans_jitter,
  count,
};
constexpr auto kQuantities = static_cast<std::size_t>(Quantity::count);
std::string_view to_string(Quantity quantity);

/// One type of job in one phase during a block.
struct WorkShare {
  PhaseKey key;
  double share = 0;         ///< of all GPUs, over the block
  double tokens_per_s = 0;  ///< over the block; NaN: not told
  double utilisation = 0;   ///< while it was there; NaN: not told
  double utilisation_sd = 0;
  double loss = 0;  ///< mean; NaN: not told
};

struct SampleBlock {
  WallTime start;
  Seconds length;
  std::uint32_t samples = 0;
  /// NaN: not known for at least half of the samples.
  std::array<double, kQuantities> mean{};
  std::vector<float> rack_power_w, rack_inlet_c;  ///< of each rack; NaN: not known
  std::vector<WorkShare> work;                    ///< by key
  std::string software;                           ///< at the end; empty: not told

  double at(Quantity quantity) const { return mean[static_cast<std::size_t>(quantity)]; }
};

/// One line without its end, and back; the same bits.
std::string to_line(const SampleBlock& block);
Result<SampleBlock> block_from_line(std::string_view line);

/// Blocks begin at whole multiples of their length since 1970. Samples come in order of time.
class BlockBuilder {
 public:
  explicit BlockBuilder(Seconds length = Seconds(600)) : length_(length) {}

  /// The block that this sample ends, if it begins another one. A block of fewer than three samples is nothing.
  std::optional<SampleBlock> take(const FacilitySample& sample);
  /// The block as it is so far, at the end of all samples.
  std::optional<SampleBlock> finish();

 private:
  struct Sum {
    std::uint32_t n = 0;
    double sum = 0, squares = 0;
    void add(double value) {
      ++n;
      sum += value;
      squares += value * value;
    }
    double mean() const;
    double sd() const;
  };
  struct Work {
    double share = 0;
    std::uint32_t token_samples = 0;
    double tokens = 0;
    Sum utilisation, loss;
  };
  struct Counter {
    std::uint32_t n = 0;
    WallTime first_at, last_at;
    std::uint64_t last = 0, risen = 0;
    void add(WallTime at, std::uint64_t value);
    double rate() const;
  };
  void add(const FacilitySample& sample);
  void add_scatter(const FacilitySample& sample, double racks);
  void add_jitter(const FacilitySample& sample);
  void add_racks(const FacilitySample& sample);
  void add_jobs(const FacilitySample& sample);

  Seconds length_;
  std::optional<WallTime> start_;
  std::uint32_t samples_ = 0;
  std::array<Sum, kQuantities> sums_;
  double voltage_least_ = 0;
  static constexpr std::size_t kQuick = 5;  ///< meters that follow the load
  std::array<double, kQuick> last_{};
  std::array<std::uint32_t, kQuick> same_{};
  /// How far readings lie from the line through the one before and the one after.
  struct Jitter {
    std::uint32_t n = 0;
    double last = 0, before = 0;
    std::vector<double> bends;
    void add(std::optional<Watts> reading);
    double middle() const;
  };
  Jitter chillers_, pumps_, fans_;
  double last_chillers_on_ = 0, switches_ = 0;
  std::uint32_t starts_ = 0;
  std::map<std::string, bool> starting_;
  Counter ecc_, link_;
  std::vector<Sum> rack_power_, rack_inlet_;
  std::map<PhaseKey, Work> work_;
  std::string software_;
};

}  // namespace flyball::facility
