#pragma once
// Who asked, what was written, what came of it. The sink is injected; the file sink chains its lines by SHA-256 (see
// audit_log.h).

#include <cstdint>
#include <deque>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "core/device.h"

namespace flyball::guard {

struct AuditEvent {
  WallTime at;
  std::string kind;  ///< "acquire", "snapshot", "write", "restore", "drift", "refused", …
  DeviceId device;   ///< empty when it is not about one board
  std::uint64_t lease = 0;
  std::string outcome;  ///< "applied", "left_to_other", …; empty when the kind says it
  std::string detail;   ///< one line
};

class AuditSink {
 public:
  virtual ~AuditSink() = default;
  /// An error = the event is not kept; the guard then gives no new lease.
  virtual Result<> record(const AuditEvent& event) = 0;
};

/// Keeps the last events in memory, for simulations and tests.
class MemoryAudit final : public AuditSink {
 public:
  explicit MemoryAudit(std::size_t most = 4096) : most_(most) {}
  Result<> record(const AuditEvent& event) override {
    if (events_.size() == most_) events_.pop_front();
    events_.push_back(event);
    return {};
  }
  const std::deque<AuditEvent>& events() const { return events_; }

 private:
  std::size_t most_;
  std::deque<AuditEvent> events_;
};

}  // namespace flyball::guard
