#include "control/guard_link.h"

namespace flyball::control {
namespace {

auto none() { return fail(ErrorCode::refused, "this run only observes"); }

}  // namespace

Result<std::unique_ptr<GuardLink>> GuardLink::connect(const std::string& path) {
  FLYBALL_ASSIGN(auto client, guard::GuardClient::connect(path));
  return std::unique_ptr<GuardLink>(new GuardLink(path, std::move(client)));
}

Result<guard::LeaseId> GuardLink::acquire(const guard::LeaseRequest& request) {
  if (!client_->connected()) {
    FLYBALL_ASSIGN(client_, guard::GuardClient::connect(path_));
  }
  return client_->acquire(request);
}

Result<guard::LeaseId> NoGuard::acquire(const guard::LeaseRequest&) { return none(); }
Result<> NoGuard::renew(guard::LeaseId) { return none(); }
Result<std::vector<guard::WriteOutcome>> NoGuard::write(guard::LeaseId, const std::vector<guard::WriteRequest>&) {
  return none();
}
Result<std::vector<guard::RestoreOutcome>> NoGuard::release(guard::LeaseId) { return none(); }
Result<std::vector<guard::RestoreOutcome>> NoGuard::restore_all(const std::string&) { return none(); }

}  // namespace flyball::control
