#include "meter/modbus/modbus_meter.h"

#include <fmt/format.h>

#include "meter/modbus/registers.h"
#include "meter/open.h"
#include "meter/point.h"

#if FLYBALL_WITH_MODBUS
#include <modbus/modbus.h>

#include <cerrno>
#endif

namespace flyball::meter {

#if FLYBALL_WITH_MODBUS
namespace {

constexpr int kModbusPort = 502;

struct Close {
  void operator()(modbus_t* context) const {
    modbus_close(context);
    modbus_free(context);
  }
};

class ModbusMeter final : public Meter, public RegisterSource {
 public:
  ModbusMeter(const Profile& profile, NumericAddress address, Clock& clock)
      : profile_(profile), address_(std::move(address)), clock_(clock), blocks_(plan_blocks(profile)) {}

  std::vector<MeterReading> read() override {
    raw_.assign(profile_.points.size(), {});
    const MonoTime begin = clock_.now();
    std::vector<MeterReading> made = all_absent(profile_, Status::missing, "not asked", clock_);
    for (const RegisterBlock& block : blocks_) {
      // A device that hangs is asked no further: the blocks that are left are not worth a timeout each.
      if (clock_.now() - begin >= profile_.timeout) {
        for (const std::size_t i : block.points) set_absent(made[i], Status::failed, "no time left after " + last_);
        continue;
      }
      read_block(block, made);
    }
    return made;
  }

  std::vector<std::uint16_t> registers_of(std::size_t point) const override {
    return point < raw_.size() ? raw_[point] : std::vector<std::uint16_t>();
  }

  Result<Identity> identify() override;

 private:
  Result<> connect() {
    if (context_) return {};
    context_.reset(modbus_new_tcp_pi(address_.host.c_str(), std::to_string(address_.port).c_str()));
    if (!context_) return fail(ErrorCode::failed, "libmodbus has no memory for a connection");
    const double seconds = profile_.timeout.value();
    const auto whole = static_cast<std::uint32_t>(seconds);
    modbus_set_response_timeout(context_.get(), whole, static_cast<std::uint32_t>((seconds - whole) * 1e6));
    modbus_set_byte_timeout(context_.get(), 0, 0);  // the response's timeout then bounds the whole answer
    modbus_set_slave(context_.get(), profile_.unit_id);
    if (modbus_connect(context_.get()) != 0) return fail(drop("connecting"));
    return {};
  }

  /// The connection is given up: an answer that is late would be taken for that to the next question.
  Error drop(std::string_view what) {
    const int code = errno;
    const std::string text = code == 0 ? "the connection ended" : modbus_strerror(code);
    context_.reset();
    last_ = fmt::format("{} {}:{} failed: {}", what, address_.host, address_.port, text);
    return {ErrorCode::failed, last_, profile_.id, "check address, unit and cable; some devices take one client only"};
  }

  static bool is_broken(int code) {
    return code == ECONNRESET || code == EPIPE || code == EBADF || code == ECONNABORTED || code == 0;
  }
  static bool is_exception(int code) { return code >= EMBXILFUN && code <= EMBXGTAR; }

  /// One request; a connection that the device closed while idle is opened once more.
  Result<std::vector<std::uint16_t>> fetch(RegisterTable table, int first, int count) {
    for (int attempt = 0;; ++attempt) {
      const bool was_open = context_ != nullptr;
      FLYBALL_TRY(connect());
      std::vector<std::uint16_t> registers(static_cast<std::size_t>(count));
      errno = 0;
      const int got = table == RegisterTable::holding
                          ? modbus_read_registers(context_.get(), first, count, registers.data())
                          : modbus_read_input_registers(context_.get(), first, count, registers.data());
      if (got == count) return registers;
      const int code = errno;
      if (is_exception(code)) {
        last_ = fmt::format("the device refuses {} registers {} to {}: {}", to_string(table),
                            first + profile_.register_base, first + count - 1 + profile_.register_base,
                            modbus_strerror(code));
        return fail(code == EMBXILADD ? ErrorCode::unsupported : ErrorCode::failed, last_, profile_.id);
      }
      const Error error = drop("reading");
      if (!was_open || attempt > 0 || !is_broken(code)) return fail(error);
    }
  }

  void read_block(const RegisterBlock& block, std::vector<MeterReading>& made) {
    const RequestTime time(clock_);
    auto registers = fetch(block.table, block.first, block.count);
    if (!registers && registers.error().code == ErrorCode::unsupported && block.points.size() > 1) {
      // One register of the range does not exist: ask for each value by itself, each still in one request.
      for (const std::size_t i : block.points) {
        const ModbusPoint& at = profile_.points[i].modbus;
        read_block({block.table, at.address - profile_.register_base, width_of(at.type), {i}}, made);
      }
      return;
    }
    for (const std::size_t i : block.points) {
      made[i].measured = time.middle();
      made[i].received = clock_.now();
      if (!registers) {
        const bool absent = registers.error().code == ErrorCode::unsupported;
        set_absent(made[i], absent ? Status::not_supported : Status::failed, registers.error().what);
        continue;
      }
      decode(i, std::span(*registers).subspan(static_cast<std::size_t>(offset(i, block))), made[i]);
    }
  }

  int offset(std::size_t i, const RegisterBlock& block) const {
    return profile_.points[i].modbus.address - profile_.register_base - block.first;
  }

  void decode(std::size_t i, std::span<const std::uint16_t> registers, MeterReading& reading) {
    const PointProfile& point = profile_.points[i];
    const auto width = static_cast<std::size_t>(width_of(point.modbus.type));
    raw_[i].assign(registers.begin(), registers.begin() + static_cast<std::ptrdiff_t>(width));
    const RegisterValue value = decode_registers(raw_[i], point.modbus);
    reading.raw = fmt::format("0x{:0{}x}", value.bits, 4 * width);
    if (value.sentinel) {
      set_absent(reading, Status::missing, "the device says not available (" + reading.raw + ")");
      return;
    }
    set_value(reading, point, value.number);
  }

  Profile profile_;
  NumericAddress address_;
  Clock& clock_;
  std::vector<RegisterBlock> blocks_;
  std::unique_ptr<modbus_t, Close> context_;
  std::vector<std::vector<std::uint16_t>> raw_;
  std::string last_;
};

/// Report Slave ID (function 17): what the device puts behind its run indicator, as text where it is text.
Result<Identity> ModbusMeter::identify() {
  FLYBALL_TRY(connect());
  std::array<std::uint8_t, 256> answer{};
  errno = 0;
  const int size = modbus_report_slave_id(context_.get(), static_cast<int>(answer.size()), answer.data());
  if (size <= 0) {
    if (is_exception(errno)) return fail(ErrorCode::unsupported, "the device does not say what it is", profile_.id);
    return fail(drop("asking for the identity of"));
  }
  Identity identity;
  for (int i = 2; i < size && i < static_cast<int>(answer.size()); ++i) {
    const auto c = static_cast<char>(answer[static_cast<std::size_t>(i)]);
    if (c >= ' ' && c <= '~') identity.model += c;
  }
  if (identity.model.empty()) return fail(ErrorCode::unsupported, "the device's identity is no text", profile_.id);
  return identity;
}

}  // namespace

Result<std::unique_ptr<Meter>> make_modbus_meter(const Profile& profile, Clock& clock) {
  FLYBALL_ASSIGN(NumericAddress address, parse_numeric_address(profile.address, kModbusPort));
  return std::make_unique<ModbusMeter>(profile, std::move(address), clock);
}

#else

Result<std::unique_ptr<Meter>> make_modbus_meter(const Profile&, Clock&) {
  return fail(left_out("Modbus", "libmodbus-dev"));
}

#endif

}  // namespace flyball::meter
