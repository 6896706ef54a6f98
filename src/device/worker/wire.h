#pragma once
// What a worker and its owner say to each other: one message a packet over a Unix SOCK_SEQPACKET pair, so that a
// message arrives whole or not at all. Little-endian numbers of fixed width; a text is a 16-bit length and bytes.
//
//   0 magic u32 'FBW1'   4 kind u16   6 operation u16   8 generation u64   16 sequence u64   24 crc32 of payload u32
//   28 payload
//
// Everything read is checked: a message of wrong size, magic, checksum or content is an error, never a value.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/driver.h"

namespace flyball::worker {

/// A list of 64 boards with the longest names fits twice.
constexpr std::size_t kMaxMessageBytes = 32 * 1024;
constexpr std::size_t kMaxTextBytes = 2048;
constexpr std::size_t kMaxDevices = 64;

enum class Kind : std::uint16_t {
  hello = 1,  ///< from the worker, once: the driver was opened, ask
  request = 2,
  value = 3,  ///< the answer
  error = 4,  ///< the answer is the driver's error
};

enum class Operation : std::uint16_t {
  none = 0,
  epoch = 1,
  devices = 2,
  read = 3,
  limits = 4,
  capabilities = 5,
  set_power_limit = 6,
  lock_clocks = 7,
  reset_clocks = 8,
};

struct Message {
  Kind kind = Kind::request;
  Operation operation = Operation::none;
  std::uint64_t generation = 0;  ///< of the worker process; an answer of another one is refused
  std::uint64_t sequence = 0;    ///< of the request; the answer repeats it
  std::string payload;
};

std::string encode(const Message& message);
Result<Message> decode(std::string_view bytes);

/// What a request carries; the fields that an operation does not use are zero.
struct Request {
  DeviceId device;
  Milliwatts limit;
  ClockRange clocks;
};

// Payloads. `get` functions take the whole payload or fail.
std::string put(const Request& request);
std::string put(const Error& error);
std::string put(const DriverEpoch& epoch);
std::string put(const std::vector<DeviceInfo>& devices);
std::string put(const GpuReading& reading);
std::string put(const PowerLimits& limits);
std::string put(const Capabilities& capabilities);

Result<Request> get_request(std::string_view payload);
Result<Error> get_error(std::string_view payload);
Result<DriverEpoch> get_epoch(std::string_view payload);
Result<std::vector<DeviceInfo>> get_devices(std::string_view payload);
Result<GpuReading> get_reading(std::string_view payload);
Result<PowerLimits> get_limits(std::string_view payload);
Result<Capabilities> get_capabilities(std::string_view payload);

}  // namespace flyball::worker
