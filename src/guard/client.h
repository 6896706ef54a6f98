#pragma once
// The guard as seen by everyone else: LimitAuthority over the socket.

#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "guard/authority.h"
#include "guard/protocol.h"

namespace flyball::guard {

/// Blocking, with a deadline for each call. After a failed call the connection is closed, which ends its leases; every
/// later call fails with the same error until a new client is made.
class GuardClient final : public LimitAuthority {
 public:
  /// No guard there: error `refused`, naming what to do.
  static Result<std::unique_ptr<GuardClient>> connect(const std::string& path, Seconds timeout = Seconds(15));

  Result<LeaseId> acquire(const LeaseRequest& request) override;
  Result<> renew(LeaseId lease) override;
  Result<std::vector<WriteOutcome>> write(LeaseId lease, const std::vector<WriteRequest>& writes) override;
  Result<std::vector<RestoreOutcome>> release(LeaseId lease) override;
  Result<std::vector<RestoreOutcome>> restore_all(const std::string& reason) override;

  /// False after a call that failed on its way.
  bool connected() const { return socket_.ok(); }
  /// The owner of a budget ends it; empty = on all boards.
  Result<std::vector<RestoreOutcome>> lift(const std::vector<DeviceId>& devices);
  /// The status document, as JSON text.
  Result<std::string> status();
  Result<> report_meter(const Sample<Watts>& meter, const Sample<Watts>& gpu_sum);
  Result<> allow(std::uint32_t uid, const std::vector<DeviceId>& devices);
  Result<> disallow(std::uint32_t uid);

 private:
  GuardClient(std::string path, Descriptor socket, Seconds timeout)
      : path_(std::move(path)), socket_(std::move(socket)), timeout_(timeout) {}
  Result<Response> call(Request request);
  Result<std::string> exchange(std::string_view line);
  tl::unexpected<Error> broken(const std::string& what);

  std::string path_;
  Descriptor socket_;
  Seconds timeout_;
  std::string input_;
  std::uint64_t next_id_ = 1;
};

}  // namespace flyball::guard
