#pragma once
// The guard over its socket, for a run that outlives one guard: a guard that is restarted ends all leases, and the next
// one that is asked for comes from the new one.

#include <memory>
#include <string>

#include "guard/authority.h"
#include "guard/client.h"

namespace flyball::control {

class GuardLink final : public guard::LimitAuthority {
 public:
  /// No guard there: error `refused`, naming what to do.
  static Result<std::unique_ptr<GuardLink>> connect(const std::string& path);

  Result<guard::LeaseId> acquire(const guard::LeaseRequest& request) override;
  Result<> renew(guard::LeaseId lease) override { return client_->renew(lease); }
  Result<std::vector<guard::WriteOutcome>> write(guard::LeaseId lease,
                                                 const std::vector<guard::WriteRequest>& writes) override {
    return client_->write(lease, writes);
  }
  Result<std::vector<guard::RestoreOutcome>> release(guard::LeaseId lease) override { return client_->release(lease); }
  Result<std::vector<guard::RestoreOutcome>> restore_all(const std::string& reason) override {
    return client_->restore_all(reason);
  }

 private:
  GuardLink(std::string path, std::unique_ptr<guard::GuardClient> client)
      : path_(std::move(path)), client_(std::move(client)) {}

  std::string path_;
  std::unique_ptr<guard::GuardClient> client_;  ///< never null; the one before when there is no guard now
};

/// For a run that sets nothing.
class NoGuard final : public guard::LimitAuthority {
 public:
  Result<guard::LeaseId> acquire(const guard::LeaseRequest& request) override;
  Result<> renew(guard::LeaseId lease) override;
  Result<std::vector<guard::WriteOutcome>> write(guard::LeaseId lease,
                                                 const std::vector<guard::WriteRequest>& writes) override;
  Result<std::vector<guard::RestoreOutcome>> release(guard::LeaseId lease) override;
  Result<std::vector<guard::RestoreOutcome>> restore_all(const std::string& reason) override;
};

}  // namespace flyball::control
