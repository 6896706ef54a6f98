#include "twin/facility_meters.h"

#include <algorithm>
#include <cmath>

namespace flyball::twin {

namespace {

constexpr double kRackResolution = 10;     // W; rack PDUs show tens of watts; chosen
constexpr double kGpuPowerNoise = 0.0005;  // of a mean of a thousand sensors; chosen
constexpr double kClockNoise = 0.0005;
constexpr double kVoltageGain = 0.003, kVoltageResolution = 0.1;  // chosen
constexpr double kSpeedResolution = 0.001;                        // drives tell tenths of a percent; chosen
constexpr double kThrottleNoise = 0.0003;

double rounded(double value, double resolution) {
  return resolution > 0 ? std::round(value / resolution) * resolution : value;
}

}  // namespace

FacilityMeters::FacilityMeters(const FacilityParameters& parameters, std::uint64_t seed) : p_(parameters) {
  std::uint64_t stream = 400;
  for (const FacilityColumn& column : facility_columns()) {
    meters_.push_back(meter_for(column, Random(seed).fork(stream++)));
  }
  for (std::uint64_t r = 0; r < 2 * p_.racks(); ++r) {
    const FacilityColumn* like = find_facility_column(r % 2 == 0 ? "it_w" : "supply_c");
    Meter& meter = rack_meters_.emplace_back(meter_for(*like, Random(seed).fork(stream++)));
    if (r % 2 == 0) meter.resolution = kRackResolution;
  }
}

FacilityMeters::Meter FacilityMeters::meter_for(const FacilityColumn& column, Random random) const {
  const FacilityMeterParameters& m = p_.meters;
  Meter meter;
  meter.random = random;
  const double unit = std::clamp(meter.random.normal(), -2.5, 2.5);
  if (column.name == "gpu_power_w") {
    meter.gain = 1 + m.gpu_gain_sd * unit;
    meter.noise_fraction = kGpuPowerNoise;
  } else if (column.unit == "W") {
    meter.gain = 1 + std::clamp(m.class_sd * unit, -0.01, 0.01);
    meter.noise_fraction = m.noise_sd;
    meter.resolution = m.resolution.value();
  } else if (column.name == "set_point_c" || column.name == "chillers_on" || column.name == "on_battery" ||
             column.name == "ecc_errors" || column.name == "link_errors") {
    meter.real = false;
  } else if (column.unit == "C") {
    const bool outdoors = column.name == "dry_bulb_c" || column.name == "wet_bulb_c";
    meter.offset = (outdoors ? m.weather_bias_sd : m.temperature_bias_sd) * unit;
    meter.noise = m.temperature_noise_sd;
    meter.resolution = m.temperature_resolution;
  } else if (column.unit == "V") {
    meter.gain = 1 + kVoltageGain * unit;
    meter.resolution = kVoltageResolution;
  } else if (column.unit == "Hz") {
    meter.noise_fraction = kClockNoise;
  } else if (column.name == "gpu_throttled_fraction") {
    meter.noise = kThrottleNoise;
  } else {
    meter.resolution = kSpeedResolution;
  }
  return meter;
}

/// Draws the same numbers whatever it shows, so that a run and its counterfactual share them.
std::optional<double> FacilityMeters::show(Meter& meter, double value) const {
  const double noise = meter.random.normal();
  const bool missing = meter.random.uniform() < p_.meters.missing_fraction;
  if (missing) return {};
  if (!meter.real) return value;
  const double shown = value * meter.gain * (1 + meter.noise_fraction * noise) + meter.offset + meter.noise * noise;
  return rounded(shown, meter.resolution);
}

void FacilityMeters::break_meter(Meter& meter, const FacilityColumn& column, const FacilityEffects& effects,
                                 std::optional<double>& shown) const {
  // Past readings are needed when a meter begins to be late; without a reading the last one stands.
  const double before = meter.ring[meter.at];
  meter.at = (meter.at + 1) % meter.ring.size();
  meter.ring[meter.at] = shown.value_or(before);
  bool stuck = false;
  for (const FacilityEffects::Active& each : effects.active()) {
    const FacilityFault& fault = *each.fault;
    if (fault.cause() != Cause::meter_fault || fault.where != column.name || !shown) continue;
    const double size = each.share * fault.size;
    switch (fault.form) {
      case FaultForm::meter_scale:
      case FaultForm::meter_drift:
        *shown *= 1 + size;
        break;
      case FaultForm::meter_deci:
        *shown *= fault.size;
        break;
      case FaultForm::meter_stuck:
        stuck = true;
        break;
      case FaultForm::meter_late: {
        const auto steps = std::min<std::size_t>(static_cast<std::size_t>(std::llround(size / p_.period.value())),
                                                 meter.ring.size() - 1);
        shown = meter.ring[(meter.at + meter.ring.size() - steps) % meter.ring.size()];
        break;
      }
      default: {  // noisy: a stream of its own, for the meter's must not move
        const auto bits = static_cast<std::uint64_t>(effects.now().nanoseconds());
        *shown *= 1 + size * Random(bits).fork(meter.ring.size()).normal();
        break;
      }
    }
    *shown = rounded(*shown, meter.resolution);
  }
  if (!stuck) {
    meter.held.reset();
    return;
  }
  if (!meter.held) meter.held = shown;
  if (shown) shown = meter.held;
}

void FacilityMeters::read(FacilitySample& sample, const FacilityEffects& effects) {
  std::size_t index = 0;
  for (const FacilityColumn& column : facility_columns()) {
    Meter& meter = meters_[index++];
    const std::optional<double> value = column.get(sample);
    std::optional<double> shown = show(meter, value.value_or(0));
    if (!value) continue;
    break_meter(meter, column, effects, shown);
    column.set(sample, shown);
  }
  sample.gpu_throttled_fraction = sample.gpu_throttled_fraction
                                      ? std::optional(std::clamp(*sample.gpu_throttled_fraction, 0.0, 1.0))
                                      : std::nullopt;
  for (std::size_t r = 0; r < sample.racks.size(); ++r) {
    RackSample& rack = sample.racks[r];
    const auto power = show(rack_meters_[2 * r], rack.power->value());
    const auto inlet = show(rack_meters_[2 * r + 1], rack.inlet->value());
    rack.power = power ? std::optional(Watts(*power)) : std::nullopt;
    rack.inlet = inlet ? std::optional(Celsius(*inlet)) : std::nullopt;
  }
}

}  // namespace flyball::twin
