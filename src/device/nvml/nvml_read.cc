#include "device/nvml/nvml_read.h"

#include <array>
#include <cmath>

#include "device/nvml/nvml_error.h"

namespace flyball::nvml {
namespace {

/// Calls on one board: after the board is lost or the session has ended, nothing more is asked.
class Caller {
 public:
  Caller(Board& board, Return& ended) : board_(board), ended_(ended) {}

  template <class R, class... Args, class... Given>
  Return operator()(const std::function<R(Args...)>& entry, Given... given) {
    if (ended_ != kSuccess) return ended_;
    if (lost_) return kGpuIsLost;
    const Return code = call(entry, board_.handle, given...);
    if (ends_session(code)) ended_ = code;
    if (code == kGpuIsLost) {
      lost_ = true;
      board_.info.state = DeviceState::lost;
    } else if (code == kSuccess) {
      board_.info.state = DeviceState::ok;
    }
    return code;
  }

 private:
  Board& board_;
  Return& ended_;
  bool lost_ = false;
};

template <class T>
Sample<T> in_range(T value, T low, T high) {
  return value >= low && value <= high ? Sample<T>(value) : Sample<T>::absent(Status::garbage);
}

Sample<Hertz> believe_clock(Return code, unsigned megahertz, Hertz most) {
  if (code != kSuccess) return Sample<Hertz>::absent(status_of(code));
  return in_range(Hertz(megahertz * 1e6), Hertz(0), most);
}

/// One entry of a field query, with the entry's own status.
Status entry_status(const FieldValue& entry) {
  // Older drivers answer INVALID_ARGUMENT for a field or scope that they do not know.
  return entry.status == kInvalidArgument ? Status::not_supported : status_of(entry.status);
}

struct Power {
  Sample<Watts> average;
  Sample<Watts> instant;
};

Power read_fields(Caller& ask, const NvmlApi& api) {
  std::array<FieldValue, 2> entries{};
  entries[0].field = kFieldPowerAverage;
  entries[1].field = kFieldPowerInstant;
  for (FieldValue& entry : entries) {
    entry.scope = kScopeGpu;
    entry.status = kNotSupported;  // an entry that the library leaves alone has no value
  }
  const Return code = ask(api.field_values, static_cast<int>(entries.size()), entries.data());
  if (code == kSuccess) return {believe_field(entries[0]), believe_field(entries[1])};
  const Status why = code == kInvalidArgument ? Status::not_supported : status_of(code);
  return {Sample<Watts>::absent(why), Sample<Watts>::absent(why)};
}

PowerSource source_of_usage(const Board& board) {
  const bool has_mean =
      board.architecture != kArchitectureUnknown && board.architecture >= kArchitectureAmpere && !board.is_ga100;
  return has_mean ? PowerSource::usage_average : PowerSource::usage_instant;
}

/// The source is chosen once a session: a field that fails later is a gap, never the other source's number.
Power read_power(Caller& ask, const NvmlApi& api, Board& board) {
  Power power;
  if (board.power_source == PowerSource::undecided || board.power_source == PowerSource::fields) {
    power = read_fields(ask, api);
    if (board.power_source == PowerSource::fields) return power;
    if (power.average.ok() || power.instant.ok()) {
      board.power_source = PowerSource::fields;
      return power;
    }
    const auto unsupported = [](const Sample<Watts>& s) { return s.status == Status::not_supported; };
    if (!unsupported(power.average) || !unsupported(power.instant)) return power;  // decide at the next read
    board.power_source = source_of_usage(board);
  }
  unsigned milliwatts = 0;
  const Return code = ask(api.power_usage, &milliwatts);
  const Sample<Watts> usage = believe_power(code, milliwatts);
  const Sample<Watts> other = Sample<Watts>::absent(Status::not_supported);
  return board.power_source == PowerSource::usage_average ? Power{usage, other} : Power{other, usage};
}

}  // namespace

Sample<Milliwatts> believe_limit(Return code, unsigned milliwatts) {
  if (code != kSuccess) return Sample<Milliwatts>::absent(status_of(code));
  return in_range(Milliwatts(milliwatts), Milliwatts(1), Milliwatts::from(kMaxBelievablePower));
}

Sample<Watts> believe_power(Return code, double milliwatts) {
  if (code != kSuccess) return Sample<Watts>::absent(status_of(code));
  return in_range(Watts(milliwatts / 1000), kMinBelievablePower, kMaxBelievablePower);
}

Sample<Watts> believe_field(const FieldValue& entry) {
  if (const Status status = entry_status(entry); status != Status::ok) return Sample<Watts>::absent(status);
  switch (entry.type) {
    case kDouble:
      return believe_power(kSuccess, entry.value.as_double);
    case kUnsignedInt:
      return believe_power(kSuccess, entry.value.as_uint);
    case kUnsignedLong:
      return believe_power(kSuccess, static_cast<double>(entry.value.as_ulong));
    case kUnsignedLongLong:
      return believe_power(kSuccess, static_cast<double>(entry.value.as_ulonglong));
    case kSignedLongLong:
      return believe_power(kSuccess, static_cast<double>(entry.value.as_longlong));
    case kSignedInt:
      return believe_power(kSuccess, entry.value.as_int);
    case kUnsignedShort:  // holds no board's milliwatts: the number stands elsewhere
      break;
  }
  return Sample<Watts>::absent(Status::garbage);
}

Sample<Joules> believe_energy(Board& board, Return code, std::uint64_t millijoules, MonoTime at) {
  if (code != kSuccess) return Sample<Joules>::absent(status_of(code));
  if (millijoules == kNotAvailable64 || millijoules == kNotAvailable32) {
    return Sample<Joules>::absent(Status::not_supported);
  }
  const Joules energy(static_cast<double>(millijoules) / 1000);
  const Joules most = kMaxBelievablePower * ((at - board.last_energy_at) + kMaxCounterLag);
  const bool follows = energy >= board.last_energy && energy - board.last_energy <= most;
  const bool confirms = board.has_doubt && energy >= board.doubtful_energy && energy - board.doubtful_energy <= most;
  if (board.has_energy && !follows && !confirms) {
    board.has_doubt = true;
    board.doubtful_energy = energy;
    return Sample<Joules>::absent(Status::garbage);
  }
  board.has_energy = true;
  board.has_doubt = false;
  board.last_energy = energy;
  board.last_energy_at = at;
  return energy;
}

Sample<ThrottleReasons> believe_throttle(Return code, std::uint64_t bits) {
  if (code != kSuccess) return Sample<ThrottleReasons>::absent(status_of(code));
  if (bits == kNotAvailable64 || bits == kNotAvailable32) return Sample<ThrottleReasons>::absent(Status::garbage);
  // The library's bits 0 to 8 are ours (nvml.h, nvmlClocksEventReason*); higher ones are not defined yet.
  return ThrottleReasons{static_cast<std::uint32_t>(bits & 0x1FF)};
}

void read_board(const NvmlApi& api, Board& board, const Clock& clock, GpuReading& reading, Return& ended) {
  Caller ask(board, ended);
  const Power power = read_power(ask, api, board);
  reading.power_average = power.average;
  reading.power_instant = power.instant;
  // On a module the counter holds CPU and memory too: another scope than the power, so it is not given out as one.
  const bool gpu_only = board.power_source == PowerSource::fields;
  reading.scope = board.info.module_scope && !gpu_only ? Scope::module : Scope::board;
  if (board.info.module_scope && gpu_only) {
    reading.energy = Sample<Joules>::absent(Status::not_supported);
  } else {
    unsigned long long millijoules = 0;
    const Return code = ask(api.energy, &millijoules);
    reading.energy = believe_energy(board, code, millijoules, clock.now());
  }
  Utilization busy{};
  Return code = ask(api.utilization, &busy);
  reading.utilisation_fraction =
      code == kSuccess ? in_range(busy.gpu / 100.0, 0.0, 1.0) : Sample<double>::absent(status_of(code));
  unsigned number = 0;
  code = ask(api.temperature, kTemperatureGpu, &number);
  reading.temperature = code == kSuccess ? in_range(Celsius(number), Celsius(1), kMaxBelievableTemperature)
                                         : Sample<Celsius>::absent(status_of(code));
  code = ask(api.clock, kClockSm, &number);
  reading.sm_clock = believe_clock(code, number, kMaxBelievableSmClock);
  code = ask(api.clock, kClockMemory, &number);
  reading.memory_clock = believe_clock(code, number, kMaxBelievableMemoryClock);
  code = ask(api.fan, &number);
  reading.fan_fraction = code == kSuccess ? in_range(number / 100.0, 0.0, kMaxBelievableFanFraction)
                                          : Sample<double>::absent(status_of(code));
  code = ask(api.limit_requested, &number);
  reading.limit_requested = believe_limit(code, number);
  code = ask(api.limit_enforced, &number);
  reading.limit_enforced = believe_limit(code, number);
  unsigned long long bits = 0;
  code = ask(api.throttle_reasons, &bits);
  reading.throttle = believe_throttle(code, bits);
  reading.state = board.info.state;
}

PowerLimits read_limits(const NvmlApi& api, Board& board, Return& ended) {
  Caller ask(board, ended);
  PowerLimits limits;
  unsigned low = 0;
  unsigned high = 0;
  Return code = ask(api.limit_requested, &low);
  limits.requested = believe_limit(code, low);
  code = ask(api.limit_enforced, &low);
  limits.enforced = believe_limit(code, low);
  code = ask(api.limit_default, &low);
  limits.factory_default = believe_limit(code, low);
  code = ask(api.limit_constraints, &low, &high);
  limits.minimum = believe_limit(code, low);
  limits.maximum = believe_limit(code, high);
  if (limits.minimum.ok() && limits.maximum.ok() && *limits.minimum > *limits.maximum) {
    limits.minimum = limits.maximum = Sample<Milliwatts>::absent(Status::garbage);
  }
  code = ask(api.persistence, &low);
  limits.persistence = code != kSuccess ? Sample<bool>::absent(status_of(code))
                       : low <= 1       ? Sample<bool>(low == kFeatureEnabled)
                                        : Sample<bool>::absent(Status::garbage);
  return limits;
}

}  // namespace flyball::nvml
