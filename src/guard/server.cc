#include "guard/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/text.h"

namespace flyball::guard {
namespace {

auto socket_error(std::string_view verb, const std::string& path) {
  return fail(ErrorCode::failed, fmt::format("cannot {} the socket: {}", verb, std::strerror(errno)), path);
}

Result<> bind_and_listen(int socket, const ServerOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options.path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::input, fmt::format("a socket's path has at most {} bytes", sizeof address.sun_path - 1),
                options.path);
  }
  std::memcpy(address.sun_path, options.path.c_str(), options.path.size() + 1);
  ::unlink(options.path.c_str());
  const mode_t before = ::umask(0117);  // 0660 from its first instant
  const int bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::umask(before);
  if (bound != 0) return socket_error("bind", options.path);
  if (options.group != static_cast<gid_t>(-1) &&
      ::chown(options.path.c_str(), static_cast<uid_t>(-1), options.group) != 0) {
    return socket_error("give its group to", options.path);
  }
  if (::listen(socket, 16) != 0) return socket_error("listen on", options.path);
  return {};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(Engine& engine, Clock& clock, ServerOptions options) {
  std::unique_ptr<Server> server(new Server(engine, clock, std::move(options)));
  server->listener_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server->listener_.ok()) return socket_error("make", server->options_.path);
  FLYBALL_TRY(bind_and_listen(server->listener_.get(), server->options_));
  return server;
}

Server::~Server() {
  if (listener_.ok()) ::unlink(options_.path.c_str());
}

void Server::turn(Seconds timeout) {
  std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
  for (const auto& client : clients_) {
    const short events = static_cast<short>(client->output.empty() ? POLLIN : POLLIN | POLLOUT);
    polled.push_back({client->socket.get(), events, 0});
    polled.push_back({client->process.get(), POLLIN, 0});  // negative descriptors are ignored
  }
  const int wait_ms = static_cast<int>(std::clamp(timeout.value(), 0.0, 60.0) * 1000);
  const int ready = ::poll(polled.data(), polled.size(), wait_ms);
  const MonoTime began = clock_.now();
  if (ready > 0) {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      Client& client = *clients_[i];
      const short socket_events = polled[1 + 2 * i].revents;
      if ((socket_events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(client);
      if ((socket_events & POLLOUT) != 0) write_to(client);
      if (polled[2 + 2 * i].revents != 0 && client.gone.empty()) client.gone = "its process has exited";
    }
    if (polled[0].revents != 0) accept_all();
  }
  for (const auto& client : clients_) {
    if (!client->output.empty() && clock_.now() - client->output_since > options_.slowest_client) {
      client->gone = "it does not read its answers";
    }
  }
  drop_gone();
  engine_.forgive(clock_.now() - began);
  const MonoTime served = clock_.now();
  engine_.tick();
  engine_.forgive(clock_.now() - served);
}

void Server::accept_all() {
  for (;;) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.ok()) return;
    if (clients_.size() >= options_.most_clients) {
      log::warning("guard", "{} clients are connected, the most allowed; another is turned away", clients_.size());
      continue;
    }
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) continue;
    auto client = std::make_unique<Client>();
    client->socket = std::move(socket);
    client->pid = peer.pid;
    client->uid = peer.uid;
    // A pid alone could be someone else's by now; a pidfd stays this process. Without the call the socket has to do.
    if (peer.pid > 0) client->process = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0)));
    if (peer.pid > 0 && !client->process.ok() && errno == ESRCH) continue;  // exited already
    clients_.push_back(std::move(client));
  }
}

void Server::read_from(Client& client) {
  char block[1 << 16];
  for (;;) {
    const ssize_t n = ::recv(client.socket.get(), block, sizeof block, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) {
      client.gone = "it closed its socket";
      break;
    }
    client.input.append(block, static_cast<std::size_t>(n));
    if (client.input.size() > 2 * kLongestLine) break;  // the rest stays in the kernel until these are served
  }
  std::size_t start = 0;
  for (std::size_t end = client.input.find('\n'); end != std::string::npos; end = client.input.find('\n', start)) {
    answer(client, std::string_view(client.input).substr(start, end - start));
    start = end + 1;
  }
  client.input.erase(0, start);
  if (client.input.size() > kLongestLine) client.gone = "it sent a line that does not end";
  write_to(client);
}

void Server::write_to(Client& client) {
  while (!client.output.empty()) {
    const ssize_t n = ::send(client.socket.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n < 0) {
      if (client.gone.empty()) client.gone = "it closed its socket";
      return;
    }
    client.output.erase(0, static_cast<std::size_t>(n));
    client.output_since = clock_.now();
  }
}

void Server::drop_gone() {
  for (const auto& client : clients_) {
    if (client->gone.empty()) continue;
    for (const LeaseId lease : client->leases) {
      engine_.client_gone(lease, fmt::format("client {} is gone: {}", client->pid, client->gone));
    }
  }
  std::erase_if(clients_, [](const auto& client) { return !client->gone.empty(); });
}

void Server::answer(Client& client, std::string_view line) {
  Response response;
  const auto request = parse_request(line, response.id);
  auto performed = request ? perform(client, *request) : Result<Response>(fail(request.error()));
  if (performed) {
    const std::uint64_t id = response.id;
    response = *std::move(performed);
    response.id = id;
  } else {
    response.error = performed.error();
  }
  if (client.output.empty()) client.output_since = clock_.now();
  client.output += encode(response);
  if (client.output.size() > options_.longest_output) client.gone = "it does not read its answers";
}

Authority Server::highest(const Client& client) const {
  if (options_.rules.site_uids.contains(client.uid)) return Authority::site;
  if (options_.rules.fleet_uids.contains(client.uid)) return Authority::fleet;
  return Authority::job;
}

Result<> Server::need(const Client& client, Authority authority) const {
  if (highest(client) >= authority) return {};
  return fail(ErrorCode::refused, fmt::format("user {} may not ask as {}", client.uid, to_string(authority)), {},
              "name the user in the guard's configuration");
}

Result<> Server::need_lease(const Client& client, LeaseId lease) const {
  if (client.leases.contains(lease) || highest(client) == Authority::site) return {};
  return fail(ErrorCode::refused, fmt::format("lease {} is not this client's", lease), {}, "acquire a lease");
}

Result<Response> Server::acquire(Client& client, const Request& request) {
  FLYBALL_TRY(need(client, request.acquire.authority));
  if (!client.stopped.empty()) {
    const std::string why = "all limits were given back on request (" + client.stopped + ")";
    if (!client.asked_in_vain) engine_.note_refused(request.acquire, why);
    client.asked_in_vain = true;
    return fail(ErrorCode::refused, why, {}, "to take up control again, start the run again");
  }
  if (options_.rules.require_allowance && highest(client) == Authority::job) {
    const auto allowed = allowed_.find(client.uid);
    for (const DeviceId& device : request.acquire.devices) {
      if (allowed != allowed_.end() && allowed->second.contains(device)) continue;
      return fail(ErrorCode::refused, fmt::format("not allocated to user {}", client.uid), device.text(),
                  "the scheduler's prolog allows a job its boards");
    }
  }
  Response response;
  FLYBALL_ASSIGN(response.lease, engine_.acquire(request.acquire));
  std::erase_if(client.leases, [&](LeaseId lease) { return !engine_.has_lease(lease); });
  client.leases.insert(response.lease);
  return response;
}

/// The stop button. Where jobs are strangers to each other, a job stops only what is its own. A stop lasts: whoever
/// lost a lease by it would otherwise ask for the next one and lower the limits again.
Result<Response> Server::restore(Client& client, const Request& request) {
  Response response;
  const std::string reason =
      fmt::format("user {}, process {}: {}", client.uid, client.pid, request.reason.substr(0, 200));
  const bool everyone = !options_.rules.require_allowance || highest(client) != Authority::job;
  for (const auto& other : clients_) {
    const bool holds = std::any_of(other->leases.begin(), other->leases.end(),
                                   [&](LeaseId lease) { return engine_.has_lease(lease); });
    if (other.get() != &client && holds && (everyone || other->uid == client.uid)) other->stopped = reason;
  }
  if (everyone) {
    FLYBALL_ASSIGN(response.restores, engine_.restore_all(reason));
    return response;
  }
  for (const auto& other : clients_) {
    if (other->uid != client.uid) continue;
    for (const LeaseId lease : other->leases) {
      const auto outcomes = engine_.release(lease);
      if (outcomes) response.restores.insert(response.restores.end(), outcomes->begin(), outcomes->end());
    }
  }
  return response;
}

Result<Response> Server::perform(Client& client, const Request& request) {
  Response response;
  if (!client.gone.empty() && (request.verb == Verb::acquire || request.verb == Verb::write)) {
    return fail(ErrorCode::refused, "the client is gone: it would be undone at once");
  }
  switch (request.verb) {
    case Verb::hello:
      return response;
    case Verb::acquire:
      return acquire(client, request);
    case Verb::renew:
      FLYBALL_TRY(need_lease(client, request.lease));
      FLYBALL_TRY(engine_.renew(request.lease));
      return response;
    case Verb::write: {
      FLYBALL_TRY(need_lease(client, request.lease));
      FLYBALL_ASSIGN(response.writes, engine_.write(request.lease, request.writes));
      return response;
    }
    case Verb::release: {
      FLYBALL_TRY(need_lease(client, request.lease));
      FLYBALL_ASSIGN(response.restores, engine_.release(request.lease));
      client.leases.erase(request.lease);
      return response;
    }
    case Verb::restore:
      return restore(client, request);
    case Verb::lift: {
      std::vector<DeviceId> devices = request.devices;
      if (devices.empty()) {
        for (const BoardStatus& board : engine_.boards()) {
          if (board.held) devices.push_back(board.device);
        }
      }
      FLYBALL_TRY(need(client, Authority::fleet));
      FLYBALL_ASSIGN(response.restores, engine_.lift(highest(client), devices));
      return response;
    }
    case Verb::status:
      response.status = status_document(engine_, clock_.wall());
      return response;
    case Verb::meter:
      FLYBALL_TRY(need(client, Authority::fleet));
      engine_.observe_meter(request.meter, request.gpu_sum);
      return response;
    case Verb::allow:
      FLYBALL_TRY(need(client, Authority::site));
      allowed_[request.uid].insert(request.devices.begin(), request.devices.end());
      return response;
    case Verb::disallow:
      FLYBALL_TRY(need(client, Authority::site));
      allowed_.erase(request.uid);
      return response;
  }
  return fail(ErrorCode::input, "no such verb");
}

}  // namespace flyball::guard
