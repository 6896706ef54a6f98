// Any line from a client, and any answer from a guard.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "guard/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flyball::guard;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  std::uint64_t id = 0;
  if (const auto request = parse_request(line, id)) {
    std::uint64_t again = 0;
    const auto second = parse_request(encode(*request), again);  // what is accepted can be said again
    if (!second || again != request->id || second->writes.size() != request->writes.size()) std::abort();
  }
  (void)parse_response(line);
  return 0;
}
