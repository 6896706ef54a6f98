#include "guard/client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"

namespace flyball::guard {
namespace {

auto no_guard(const std::string& path, const std::string& why) {
  return fail(ErrorCode::refused, "no guard answers: " + why, path,
              "start flyball-guard; to give back limits without it: `sudo flyball-guard restore`");
}

int milliseconds_until(const Clock& clock, MonoTime deadline) {
  return static_cast<int>(std::max(0.0, (deadline - clock.now()).value() * 1000) + 1);
}

}  // namespace

Result<std::unique_ptr<GuardClient>> GuardClient::connect(const std::string& path, Seconds timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return no_guard(path, "the path is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.ok()) return fail(ErrorCode::failed, std::string("cannot make a socket: ") + std::strerror(errno));
  // Local sockets connect at once or say why not.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EACCES || errno == EPERM) {
      return fail(ErrorCode::refused, "no permission to talk to the guard", path, "join the socket's group");
    }
    return no_guard(path, std::strerror(errno));
  }
  return std::unique_ptr<GuardClient>(new GuardClient(path, std::move(socket), timeout));
}

tl::unexpected<Error> GuardClient::broken(const std::string& what) {
  socket_ = Descriptor();
  return no_guard(path_, what);
}

Result<std::string> GuardClient::exchange(std::string_view line) {
  const SystemClock clock;
  const MonoTime deadline = clock.now() + timeout_;
  while (clock.now() < deadline) {
    const std::size_t end = input_.find('\n');
    if (end != std::string::npos) {
      std::string answer = input_.substr(0, end);
      input_.erase(0, end + 1);
      return answer;
    }
    if (input_.size() > 8 * kLongestLine) return broken("its answer does not end");
    pollfd polled{socket_.get(), static_cast<short>(line.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    if (::poll(&polled, 1, milliseconds_until(clock, deadline)) < 0 && errno != EINTR)
      return broken(std::strerror(errno));
    if (!line.empty() && (polled.revents & POLLOUT) != 0) {
      const ssize_t n = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
      if (n > 0) line.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN && errno != EINTR) return broken(std::strerror(errno));
    }
    if ((polled.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      char block[1 << 16];
      const ssize_t n = ::recv(socket_.get(), block, sizeof block, 0);
      if (n == 0) return broken("it closed the connection");
      if (n > 0) input_.append(block, static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN && errno != EINTR) return broken(std::strerror(errno));
    }
  }
  return broken("no answer within " + format(timeout_));
}

Result<Response> GuardClient::call(Request request) {
  if (!socket_.ok()) return no_guard(path_, "the connection was lost");
  request.id = next_id_++;
  FLYBALL_ASSIGN(const std::string answer, exchange(encode(request)));
  auto response = parse_response(answer);
  if (!response) return broken("its answer is not readable: " + response.error().message());
  if (response->id != request.id) return broken("it answered another question");
  if (response->error) return fail(*response->error);
  return response;
}

Result<LeaseId> GuardClient::acquire(const LeaseRequest& lease) {
  Request request;
  request.verb = Verb::acquire;
  request.acquire = lease;
  FLYBALL_ASSIGN(const Response response, call(std::move(request)));
  return response.lease;
}

Result<> GuardClient::renew(LeaseId lease) {
  Request request;
  request.verb = Verb::renew;
  request.lease = lease;
  FLYBALL_TRY(call(std::move(request)));
  return {};
}

Result<std::vector<WriteOutcome>> GuardClient::write(LeaseId lease, const std::vector<WriteRequest>& writes) {
  Request request;
  request.verb = Verb::write;
  request.lease = lease;
  request.writes = writes;
  FLYBALL_ASSIGN(Response response, call(std::move(request)));
  return std::move(response.writes);
}

Result<std::vector<RestoreOutcome>> GuardClient::release(LeaseId lease) {
  Request request;
  request.verb = Verb::release;
  request.lease = lease;
  FLYBALL_ASSIGN(Response response, call(std::move(request)));
  return std::move(response.restores);
}

Result<std::vector<RestoreOutcome>> GuardClient::restore_all(const std::string& reason) {
  Request request;
  request.verb = Verb::restore;
  request.reason = reason;
  FLYBALL_ASSIGN(Response response, call(std::move(request)));
  return std::move(response.restores);
}

Result<std::vector<RestoreOutcome>> GuardClient::lift(const std::vector<DeviceId>& devices) {
  Request request;
  request.verb = Verb::lift;
  request.devices = devices;
  FLYBALL_ASSIGN(Response response, call(std::move(request)));
  return std::move(response.restores);
}

Result<std::string> GuardClient::status() {
  Request request;
  request.verb = Verb::status;
  FLYBALL_ASSIGN(Response response, call(std::move(request)));
  return std::move(response.status);
}

Result<> GuardClient::report_meter(const Sample<Watts>& meter, const Sample<Watts>& gpu_sum) {
  Request request;
  request.verb = Verb::meter;
  request.meter = meter;
  request.gpu_sum = gpu_sum;
  FLYBALL_TRY(call(std::move(request)));
  return {};
}

Result<> GuardClient::allow(std::uint32_t uid, const std::vector<DeviceId>& devices) {
  Request request;
  request.verb = Verb::allow;
  request.uid = uid;
  request.devices = devices;
  FLYBALL_TRY(call(std::move(request)));
  return {};
}

Result<> GuardClient::disallow(std::uint32_t uid) {
  Request request;
  request.verb = Verb::disallow;
  request.uid = uid;
  FLYBALL_TRY(call(std::move(request)));
  return {};
}

}  // namespace flyball::guard
