#include <fmt/format.h>

#include <iterator>

#include "twin/parameters.h"

namespace flyball::twin {

namespace {

constexpr std::string_view kNames[] = {"a100-sxm4-80gb", "a100-pcie-80gb", "h100-sxm5-80gb", "v100-pcie-16gb",
                                       "a100-sxm4-80gb-500w"};

GpuParameters a100_pcie() {
  GpuParameters p;
  p.name = "NVIDIA A100 80GB PCIe";
  p.minimum_limit = Watts(150);
  p.maximum_limit = p.default_limit = Watts(300);
  p.memory_clock = Hertz(1512e6);
  p.idle_power = Watts(52);
  return p;  // the chip is that of the module board; the limit binds earlier
}

// The variant with custom cooling; the measured clock curves draw up to 478 W, so they are of such boards.
GpuParameters a100_sxm_500w() {
  GpuParameters p;
  p.maximum_limit = p.default_limit = Watts(500);
  return p;
}

GpuParameters h100_sxm() {
  GpuParameters p;
  p.name = "NVIDIA H100 80GB HBM3";
  p.minimum_limit = Watts(200);
  p.maximum_limit = p.default_limit = Watts(700);
  p.minimum_clock = Hertz(345e6);
  p.maximum_clock = Hertz(1980e6);
  p.memory_clock = Hertz(2619e6);
  p.idle_power = Watts(70);
  p.full_power = Watts(760);
  p.thermal_resistance = 0.05;
  p.sensor_average = Seconds(1);
  return p;
}

GpuParameters v100_pcie() {
  GpuParameters p;
  p.name = "Tesla V100-PCIE-16GB";
  p.minimum_limit = Watts(100);
  p.maximum_limit = p.default_limit = Watts(250);
  p.minimum_clock = Hertz(135e6);
  p.maximum_clock = Hertz(1380e6);
  p.memory_clock = Hertz(877e6);
  p.memory_bytes = 17'071'734'784;
  p.idle_power = Watts(26);
  p.full_power = Watts(265);
  p.thermal_resistance = 0.16;
  p.slowdown_temperature = Celsius(83);
  p.shutdown_temperature = Celsius(90);
  p.sensor_period = Seconds(0.02);
  p.sensor_look_fraction = 0.5;
  p.has_instant_power = false;
  return p;
}

}  // namespace

std::vector<std::string> gpu_preset_names() { return {std::begin(kNames), std::end(kNames)}; }

Result<GpuParameters> gpu_preset(std::string_view name) {
  if (name == kNames[0]) return GpuParameters{};
  if (name == kNames[1]) return a100_pcie();
  if (name == kNames[2]) return h100_sxm();
  if (name == kNames[3]) return v100_pcie();
  if (name == kNames[4]) return a100_sxm_500w();
  return fail(ErrorCode::input, fmt::format("there is no GPU preset '{}'", name.substr(0, 60)), {},
              fmt::format("use one of: {}", fmt::join(kNames, " ")));
}

}  // namespace flyball::twin
