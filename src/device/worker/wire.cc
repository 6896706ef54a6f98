#include "device/worker/wire.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <type_traits>

#include "base/checksum.h"

namespace flyball::worker {
namespace {

constexpr std::uint32_t kMagic = 0x31574246;  // "FBW1" in the order of the bytes
constexpr std::size_t kHeaderBytes = 28;

class Writer {
 public:
  template <class T>
  Writer& number(T value) {
    using U = std::make_unsigned_t<T>;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<char>(static_cast<U>(value) >> (8 * i) & 0xFF));
    }
    return *this;
  }
  Writer& real(double value) { return number(std::bit_cast<std::uint64_t>(value)); }
  Writer& text(std::string_view value) {
    value = value.substr(0, kMaxTextBytes);
    number(static_cast<std::uint16_t>(value.size()));
    bytes_.append(value);
    return *this;
  }
  template <class E>
  Writer& choice(E value) {
    return number(static_cast<std::uint8_t>(value));
  }
  Writer& append(std::string_view raw) {
    bytes_.append(raw);
    return *this;
  }
  template <class Unit>
  Writer& sample(const Sample<Quantity<Unit>>& s) {
    return choice(s.status).real(s.value.value());
  }
  Writer& sample(const Sample<double>& s) { return choice(s.status).real(s.value); }
  Writer& sample(const Sample<Milliwatts>& s) { return choice(s.status).number(s.value.value()); }
  Writer& sample(const Sample<ThrottleReasons>& s) { return choice(s.status).number(s.value.bits); }
  Writer& sample(const Sample<bool>& s) { return choice(s.status).number<std::uint8_t>(s.value ? 1 : 0); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// After the first mistake everything reads as zero and `done` says no.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T number() {
    if (rest_.size() < sizeof(T)) return bad_ = true, T{};
    std::make_unsigned_t<T> value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value = static_cast<std::make_unsigned_t<T>>(
          value | static_cast<std::make_unsigned_t<T>>(
                      static_cast<std::make_unsigned_t<T>>(static_cast<unsigned char>(rest_[i])) << (8 * i)));
    }
    rest_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }
  double real() { return std::bit_cast<double>(number<std::uint64_t>()); }
  std::string text() {
    const std::size_t size = number<std::uint16_t>();
    if (size > kMaxTextBytes || size > rest_.size()) return bad_ = true, std::string();
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  template <class E>
  E choice(E last, E first = E{}) {
    const auto value = number<std::uint8_t>();
    if (value < static_cast<unsigned>(first) || value > static_cast<unsigned>(last)) return bad_ = true, first;
    return static_cast<E>(value);
  }
  Status status() { return choice(Status::garbage); }
  DeviceId device() {
    const std::string name = text();
    if (name.empty()) return {};
    auto id = DeviceId::parse(name);
    if (!id) return bad_ = true, DeviceId();
    return *std::move(id);
  }
  template <class Unit>
  void sample(Sample<Quantity<Unit>>& s) {
    s.status = status();
    s.value = Quantity<Unit>(real());
    if (s.ok() && !s.value.finite()) bad_ = true;
  }
  void sample(Sample<double>& s) {
    s.status = status();
    s.value = real();
    if (s.ok() && !std::isfinite(s.value)) bad_ = true;
  }
  void sample(Sample<Milliwatts>& s) {
    s.status = status();
    s.value = Milliwatts(number<std::int64_t>());
  }
  void sample(Sample<ThrottleReasons>& s) {
    s.status = status();
    s.value.bits = number<std::uint32_t>();
  }
  void sample(Sample<bool>& s) {
    s.status = status();
    s.value = flag();
  }
  bool flag() { return choice<std::uint8_t>(1) != 0; }

  /// The value, if all of the payload was read and nothing was wrong with it.
  template <class T>
  Result<T> done(T value, const char* what) const {
    if (bad_ || !rest_.empty()) {
      return fail(ErrorCode::failed, fmt::format("a worker's message of kind '{}' is malformed", what));
    }
    return value;
  }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace

std::string encode(const Message& message) {
  Writer out;
  out.number(kMagic)
      .number(static_cast<std::uint16_t>(message.kind))
      .number(static_cast<std::uint16_t>(message.operation))
      .number(message.generation)
      .number(message.sequence)
      .number(crc32(message.payload))
      .append(message.payload);
  return out.take();
}

Result<Message> decode(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kMaxMessageBytes) {
    return fail(ErrorCode::failed, fmt::format("a worker's message of {} bytes is no message", bytes.size()));
  }
  Reader in(bytes.substr(0, kHeaderBytes));
  if (in.number<std::uint32_t>() != kMagic) return fail(ErrorCode::failed, "a worker's message has no magic number");
  Message message;
  const auto kind = in.number<std::uint16_t>();
  const auto operation = in.number<std::uint16_t>();
  if (kind < static_cast<unsigned>(Kind::hello) || kind > static_cast<unsigned>(Kind::error) ||
      operation > static_cast<unsigned>(Operation::reset_clocks)) {
    return fail(ErrorCode::failed, fmt::format("a worker's message has kind {} and operation {}", kind, operation));
  }
  message.kind = static_cast<Kind>(kind);
  message.operation = static_cast<Operation>(operation);
  message.generation = in.number<std::uint64_t>();
  message.sequence = in.number<std::uint64_t>();
  const auto checksum = in.number<std::uint32_t>();
  message.payload = std::string(bytes.substr(kHeaderBytes));
  if (checksum != crc32(message.payload)) return fail(ErrorCode::failed, "a worker's message fails its checksum");
  return message;
}

std::string put(const Request& request) {
  return Writer()
      .text(request.device.text())
      .number(request.limit.value())
      .real(request.clocks.low.value())
      .real(request.clocks.high.value())
      .take();
}

Result<Request> get_request(std::string_view payload) {
  Reader in(payload);
  Request request;
  request.device = in.device();
  request.limit = Milliwatts(in.number<std::int64_t>());
  request.clocks.low = Hertz(in.real());
  request.clocks.high = Hertz(in.real());
  return in.done(request, "request");
}

std::string put(const Error& error) {
  return Writer().choice(error.code).text(error.what).text(error.where).text(error.remedy).take();
}

Result<Error> get_error(std::string_view payload) {
  Reader in(payload);
  Error error;
  error.code = in.choice(ErrorCode::degraded, ErrorCode::failed);
  error.what = in.text();
  error.where = in.text();
  error.remedy = in.text();
  return in.done(error, "error");
}

std::string put(const DriverEpoch& epoch) {
  return Writer().text(epoch.boot_id).text(epoch.driver_load).text(epoch.version).take();
}

Result<DriverEpoch> get_epoch(std::string_view payload) {
  Reader in(payload);
  DriverEpoch epoch;
  epoch.boot_id = in.text();
  epoch.driver_load = in.text();
  epoch.version = in.text();
  return in.done(epoch, "epoch");
}

std::string put(const std::vector<DeviceInfo>& devices) {
  Writer out;
  const std::size_t count = std::min(devices.size(), kMaxDevices);
  out.number(static_cast<std::uint16_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const DeviceInfo& info = devices[i];
    out.text(info.id.text()).text(info.name.substr(0, 128)).text(info.pci_bus.substr(0, 64)).choice(info.state);
    out.number<std::uint8_t>(info.shared).number<std::uint8_t>(info.module_scope);
  }
  return out.take();
}

Result<std::vector<DeviceInfo>> get_devices(std::string_view payload) {
  Reader in(payload);
  const std::size_t count = in.number<std::uint16_t>();
  if (count > kMaxDevices) return fail(ErrorCode::failed, fmt::format("a worker lists {} devices", count));
  std::vector<DeviceInfo> devices(count);
  for (DeviceInfo& info : devices) {
    info.id = in.device();
    info.name = in.text();
    info.pci_bus = in.text();
    info.state = in.choice(DeviceState::not_ready);
    info.shared = in.flag();
    info.module_scope = in.flag();
  }
  return in.done(std::move(devices), "devices");
}

std::string put(const GpuReading& r) {
  Writer out;
  out.text(r.device.text()).number(r.taken.nanoseconds()).number(r.wall.nanoseconds()).real(r.call_time.value());
  out.choice(r.state).choice(r.scope);
  out.sample(r.power_average).sample(r.power_instant).sample(r.energy).sample(r.utilisation_fraction);
  out.sample(r.temperature).sample(r.sm_clock).sample(r.memory_clock).sample(r.limit_requested);
  out.sample(r.limit_enforced).sample(r.throttle).sample(r.fan_fraction);
  return out.take();
}

Result<GpuReading> get_reading(std::string_view payload) {
  Reader in(payload);
  GpuReading r;
  r.device = in.device();
  r.taken = MonoTime(in.number<std::int64_t>());
  r.wall = WallTime(in.number<std::int64_t>());
  r.call_time = Seconds(in.real());
  r.state = in.choice(DeviceState::not_ready);
  r.scope = in.choice(Scope::unknown);
  in.sample(r.power_average);
  in.sample(r.power_instant);
  in.sample(r.energy);
  in.sample(r.utilisation_fraction);
  in.sample(r.temperature);
  in.sample(r.sm_clock);
  in.sample(r.memory_clock);
  in.sample(r.limit_requested);
  in.sample(r.limit_enforced);
  in.sample(r.throttle);
  in.sample(r.fan_fraction);
  return in.done(r, "reading");
}

std::string put(const PowerLimits& l) {
  Writer out;
  out.sample(l.requested).sample(l.enforced).sample(l.minimum).sample(l.maximum).sample(l.factory_default);
  out.sample(l.persistence);
  return out.take();
}

Result<PowerLimits> get_limits(std::string_view payload) {
  Reader in(payload);
  PowerLimits l;
  in.sample(l.requested);
  in.sample(l.enforced);
  in.sample(l.minimum);
  in.sample(l.maximum);
  in.sample(l.factory_default);
  in.sample(l.persistence);
  return in.done(l, "limits");
}

std::string put(const Capabilities& c) {
  return Writer()
      .choice(c.read_power)
      .choice(c.read_instant_power)
      .choice(c.read_energy)
      .choice(c.read_limits)
      .choice(c.write_limit)
      .choice(c.lock_clocks)
      .take();
}

Result<Capabilities> get_capabilities(std::string_view payload) {
  Reader in(payload);
  Capabilities c;
  c.read_power = in.status();
  c.read_instant_power = in.status();
  c.read_energy = in.status();
  c.read_limits = in.status();
  c.write_limit = in.status();
  c.lock_clocks = in.status();
  return in.done(c, "capabilities");
}

}  // namespace flyball::worker
