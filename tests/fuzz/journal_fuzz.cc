// Any bytes as the guard's journal and as its audit log.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "guard/audit_log.h"
#include "guard/journal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flyball::guard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const JournalContent content = parse_journal(bytes);
  for (const auto& [device, hold] : content.holds) {
    const auto again = decode_hold(encode_hold(hold));
    if (!again || !(*again == hold)) std::abort();
  }
  (void)decode_hold(bytes);
  AuditVerifier verifier;
  verifier.feed(bytes);
  (void)verifier.finish("{\"count\":1,\"hash\":\"x\"}");
  return 0;
}
