#pragma once
// What goes over the guard's socket: one JSON object a line, both ways. Described in doc/guard-protocol.md; the words
// are here and nowhere else.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/authority.h"
#include "guard/engine.h"

namespace flyball::guard {

constexpr int kProtocolVersion = 1;
/// Of one line, both ways. 1,024 devices with long names need about 200 KiB.
constexpr std::size_t kLongestLine = 512 * 1024;

enum class Verb : std::uint8_t { hello, acquire, renew, write, release, restore, lift, status, meter, allow, disallow };
std::string_view to_string(Verb verb);

struct Request {
  std::uint64_t id = 0;
  Verb verb = Verb::hello;
  LeaseRequest acquire;              ///< acquire
  LeaseId lease = 0;                 ///< renew, write, release
  std::vector<WriteRequest> writes;  ///< write
  std::string reason;                ///< restore
  std::vector<DeviceId> devices;     ///< lift, allow; empty in lift = all
  Sample<Watts> meter;               ///< meter
  Sample<Watts> gpu_sum;             ///< meter
  std::uint32_t uid = 0;             ///< allow, disallow
};

struct Response {
  std::uint64_t id = 0;
  std::optional<Error> error;
  LeaseId lease = 0;
  std::vector<WriteOutcome> writes;
  std::vector<RestoreOutcome> restores;
  std::string status;  ///< the `status` document, as JSON text
};

std::string encode(const Request& request);
/// Errors `input`: not JSON, too deep, an unknown verb or version, a field of the wrong kind. Unknown fields are
/// ignored. `id` is set as far as it could be read, so that the answer finds its question.
Result<Request> parse_request(std::string_view line, std::uint64_t& id);

std::string encode(const Response& response);
Result<Response> parse_response(std::string_view line);

/// The `status` document ("schema":"flyball.guard_status/1").
std::string status_document(const Engine& engine, WallTime now);
/// The document of `restore` ("schema":"flyball.restore/1").
std::string restore_document(const std::vector<RestoreOutcome>& outcomes);

}  // namespace flyball::guard
