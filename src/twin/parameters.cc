#include "twin/parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "base/text.h"

namespace flyball::twin {

namespace {

template <class Gpu, class Visit>
void visit_gpu(Gpu& p, Visit visit) {
  visit("gpu.name", p.name);
  visit("gpu.minimum_limit", p.minimum_limit);
  visit("gpu.maximum_limit", p.maximum_limit);
  visit("gpu.default_limit", p.default_limit);
  visit("gpu.minimum_clock", p.minimum_clock);
  visit("gpu.maximum_clock", p.maximum_clock);
  visit("gpu.memory_clock", p.memory_clock);
  visit("gpu.memory_bytes", p.memory_bytes);
  visit("gpu.idle_power", p.idle_power);
  visit("gpu.full_power", p.full_power);
  visit("gpu.clock_free_fraction", p.clock_free_fraction);
  visit("gpu.voltage_floor", p.voltage_floor);
  visit("gpu.voltage_slope", p.voltage_slope);
  visit("gpu.board_power_sd", p.board_power_sd);
  visit("gpu.inlet_temperature", p.inlet_temperature);
  visit("gpu.thermal_resistance", p.thermal_resistance);
  visit("gpu.thermal_time", p.thermal_time);
  visit("gpu.leakage_per_kelvin", p.leakage_per_kelvin);
  visit("gpu.reference_temperature", p.reference_temperature);
  visit("gpu.slowdown_temperature", p.slowdown_temperature);
  visit("gpu.shutdown_temperature", p.shutdown_temperature);
  visit("gpu.has_fan", p.has_fan);
  visit("gpu.fan_resistance_gain", p.fan_resistance_gain);
  visit("gpu.settle_time", p.settle_time);
  visit("gpu.overshoot_fraction", p.overshoot_fraction);
  visit("gpu.overshoot_time", p.overshoot_time);
  visit("gpu.brake_clock_fraction", p.brake_clock_fraction);
  visit("gpu.sensor_period", p.sensor_period);
  visit("gpu.sensor_look_fraction", p.sensor_look_fraction);
  visit("gpu.sensor_average", p.sensor_average);
  visit("gpu.sensor_gain_sd", p.sensor_gain_sd);
  visit("gpu.counter_gain_sd", p.counter_gain_sd);
  visit("gpu.counter_resolution", p.counter_resolution);
  visit("gpu.has_energy_counter", p.has_energy_counter);
  visit("gpu.has_instant_power", p.has_instant_power);
}

template <class Job, class Visit>
void visit_job(Job& p, Visit visit) {
  visit("job.tokens_per_step", p.tokens_per_step);
  visit("job.step_time", p.step_time);
  visit("job.compute_share", p.compute_share);
  visit("job.activity_fraction", p.activity_fraction);
  visit("job.exposed_wait_fraction", p.exposed_wait_fraction);
  visit("job.absorbable_wait_fraction", p.absorbable_wait_fraction);
  visit("job.wait_power_fraction", p.wait_power_fraction);
  visit("job.hung_power_fraction", p.hung_power_fraction);
  visit("job.rank_work_sd", p.rank_work_sd);
  visit("job.throughput_noise_sd", p.throughput_noise_sd);
  visit("job.drift_sd", p.drift_sd);
  visit("job.drift_time", p.drift_time);
  visit("job.evaluation_every", p.evaluation_every);
  visit("job.evaluation_time", p.evaluation_time);
  visit("job.evaluation_activity_fraction", p.evaluation_activity_fraction);
  visit("job.evaluation_compute_share", p.evaluation_compute_share);
  visit("job.checkpoint_every", p.checkpoint_every);
  visit("job.checkpoint_time", p.checkpoint_time);
  visit("job.checkpoint_activity_fraction", p.checkpoint_activity_fraction);
  visit("job.startup_time", p.startup_time);
  visit("job.stop_after_steps", p.stop_after_steps);
}

template <class Machine, class Visit>
void visit_all(Machine& p, Visit visit) {
  visit_gpu(p.gpu, visit);
  visit_job(p.job, visit);
  visit("gpus", p.gpus);
  visit("seed", p.seed);
  visit("tick", p.tick);
  visit("speed", p.speed);
}

std::string show(const std::string& v) { return v; }
std::string show(bool v) { return v ? "true" : "false"; }
std::string show(std::uint64_t v) { return fmt::format("{}", v); }
std::string show(double v) { return format_exact(v); }
std::string show(Watts v) { return format_exact(v.value()) + "W"; }
std::string show(Joules v) { return format_exact(v.value()) + "J"; }
std::string show(Seconds v) { return format_exact(v.value()) + "s"; }
std::string show(Hertz v) { return format_exact(v.value()) + "Hz"; }
std::string show(Celsius v) { return format_exact(v.value()) + "C"; }

template <class T>
Result<> assign(T& to, Result<T> value) {
  if (!value) return fail(value.error());
  to = *value;
  return {};
}
Result<> read(std::string_view text, std::string& to) {
  if (text.empty() || text.size() > 95 || !is_printable_ascii(text)) {
    return fail(ErrorCode::input, "a name has 1 to 95 printable ASCII characters");
  }
  to = text;
  return {};
}
Result<> read(std::string_view text, bool& to) {
  if (text != "true" && text != "false") return fail(ErrorCode::input, fmt::format("'{}' is not true or false", text));
  to = text == "true";
  return {};
}
Result<> read(std::string_view text, std::uint64_t& to) {
  FLYBALL_ASSIGN(const std::int64_t value, parse_int(text));
  if (value < 0) return fail(ErrorCode::input, fmt::format("{} is negative", value));
  to = static_cast<std::uint64_t>(value);
  return {};
}
Result<> read(std::string_view text, double& to) { return assign(to, parse_fraction(text)); }
Result<> read(std::string_view text, Watts& to) { return assign(to, parse_watts(text)); }
Result<> read(std::string_view text, Joules& to) { return assign(to, parse_joules(text)); }
Result<> read(std::string_view text, Seconds& to) { return assign(to, parse_seconds(text)); }
Result<> read(std::string_view text, Hertz& to) { return assign(to, parse_hertz(text)); }
Result<> read(std::string_view text, Celsius& to) {
  std::string_view body = trim(text);
  if (!body.ends_with('C')) {
    return fail(ErrorCode::input, fmt::format("'{}' is not a temperature", text), {}, "write 35C");
  }
  body.remove_suffix(1);
  if (body.ends_with("°")) body.remove_suffix(std::string_view("°").size());
  FLYBALL_ASSIGN(const double value, parse_double(trim(body)));
  to = Celsius(value);
  return {};
}

/// Collects what is out of range, so that one message names it all.
class Complaints {
 public:
  template <class T>
  void between(const char* key, T value, T low, T high) {
    if (!(value >= low && value <= high)) {
      text_ += fmt::format("{}{} is {}, allowed is {} to {}", text_.empty() ? "" : "; ", key, show(value), show(low),
                           show(high));
    }
  }
  void fraction(const char* key, double value) { between(key, value, 0.0, 1.0); }
  Result<> result() const {
    if (text_.empty()) return {};
    return fail(ErrorCode::input, text_, {}, "set it inside the range");
  }

 private:
  std::string text_;
};

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
  c.between("job.absorbable_wait_fraction", p.absorbable_wait_fraction, 0.0, 0.95 - p.exposed_wait_fraction);
  c.fraction("job.wait_power_fraction", p.wait_power_fraction);
  c.fraction("job.hung_power_fraction", p.hung_power_fraction);
  c.between("job.rank_work_sd", p.rank_work_sd, 0.0, 0.5);
  c.between("job.throughput_noise_sd", p.throughput_noise_sd, 0.0, 0.2);
  c.between("job.drift_sd", p.drift_sd, 0.0, 0.2);
  c.between("job.drift_time", p.drift_time, Seconds(1), Seconds(1e7));
  c.between("job.evaluation_time", p.evaluation_time, Seconds(0.001), Seconds(1e5));
  c.between("job.evaluation_activity_fraction", p.evaluation_activity_fraction, 0.0, 1.5);
  c.fraction("job.evaluation_compute_share", p.evaluation_compute_share);
  c.between("job.checkpoint_time", p.checkpoint_time, Seconds(0.001), Seconds(1e5));
  c.between("job.checkpoint_activity_fraction", p.checkpoint_activity_fraction, 0.0, 1.5);
  c.between("job.startup_time", p.startup_time, Seconds(0), Seconds(1e6));
}

}  // namespace

std::vector<ParameterInfo> list_parameters(const MachineParameters& parameters) {
  std::vector<ParameterInfo> all;
  visit_all(parameters, [&all](const char* key, const auto& value) { all.push_back({key, show(value)}); });
  return all;
}

Result<> set_parameter(MachineParameters& parameters, std::string_view key, std::string_view value) {
  bool known = false;
  Result<> done;
  visit_all(parameters, [&](const char* name, auto& field) {
    if (key != name) return;
    known = true;
    done = read(value, field);
  });
  if (known && done) return {};
  if (known) {
    Error error = done.error();
    error.where = key;
    return fail(std::move(error));
  }
  std::string names;
  visit_all(parameters, [&names](const char* name, const auto&) {
    if (!names.empty()) names += ' ';
    names += name;
  });
  return fail(ErrorCode::input, fmt::format("there is no parameter '{}'", key.substr(0, 60)), {},
              "use one of: " + names);
}

Result<> check(const MachineParameters& parameters) {
  Complaints c;
  check_gpu(parameters.gpu, c);
  check_job(parameters.job, c);
  c.between<std::uint64_t>("gpus", parameters.gpus, 1, 100'000);
  c.between("tick", parameters.tick, Seconds(0.001), Seconds(10));
  c.between("speed", parameters.speed, 1.0, 50.0);
  return c.result();
}

}  // namespace flyball::twin
