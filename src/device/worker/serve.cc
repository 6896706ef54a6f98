#include "device/worker/serve.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "device/nvml/nvml_driver.h"
#include "device/worker/wire.h"

namespace flyball::worker {
namespace {

bool asked = false;  ///< by main, before anything else runs

bool send_message(int descriptor, const Message& message) {
  const std::string bytes = encode(message);
  ssize_t sent = -1;
  do {
    sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

/// Empty at the end.
std::string receive(int descriptor) {
  std::string bytes(kMaxMessageBytes, '\0');
  ssize_t size = -1;
  do {
    size = ::recv(descriptor, bytes.data(), bytes.size(), 0);
  } while (size < 0 && errno == EINTR);
  bytes.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return bytes;
}

template <class T>
void answer(Message& reply, const Result<T>& result) {
  reply.kind = result ? Kind::value : Kind::error;
  if constexpr (std::is_void_v<T>) {
    reply.payload = result ? std::string() : put(result.error());
  } else {
    reply.payload = result ? put(*result) : put(result.error());
  }
}

void act(Driver& driver, const Request& r, Message& reply) {
  switch (reply.operation) {
    case Operation::epoch:
      return answer(reply, driver.epoch());
    case Operation::devices:
      return answer(reply, driver.devices());
    case Operation::read:
      return answer(reply, driver.read(r.device));
    case Operation::limits:
      return answer(reply, driver.limits(r.device));
    case Operation::capabilities:
      return answer(reply, driver.capabilities(r.device));
    case Operation::set_power_limit:
      return answer(reply, driver.set_power_limit(r.device, r.limit));
    case Operation::lock_clocks:
      return answer(reply, driver.lock_clocks(r.device, r.clocks));
    case Operation::reset_clocks:
      return answer(reply, driver.reset_clocks(r.device));
    case Operation::none:
      break;
  }
  answer(reply, Result<>(fail(ErrorCode::input, "a worker was asked for nothing")));
}

}  // namespace

Result<> become_worker(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return fail(ErrorCode::failed, "the owner of this worker process is gone");
  ::setsid();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  return {};
}

int serve(int descriptor, std::uint64_t generation, const DriverFactory& make_driver) {
  const std::unique_ptr<Driver> driver = make_driver();
  // The slow part of opening a driver happens before the hello, whose deadline is long; its error, if any, comes
  // again with the first request.
  (void)driver->devices();
  Message reply;
  reply.kind = Kind::hello;
  reply.generation = generation;
  if (!send_message(descriptor, reply)) return 1;
  for (;;) {
    const std::string bytes = receive(descriptor);
    if (bytes.empty()) return 0;
    const Result<Message> message = decode(bytes);
    const Result<Request> request = message ? get_request(message->payload) : tl::unexpected(message.error());
    if (!request || message->kind != Kind::request) return 1;
    reply.operation = message->operation;
    reply.sequence = message->sequence;
    act(*driver, *request, reply);
    if (!send_message(descriptor, reply)) return 1;
  }
}

bool is_worker_program(int argc, char** argv) {
  asked = true;
  return argc >= 2 && std::string_view(argv[1]) == "worker";
}

bool can_be_worker_program() { return asked; }

int run_worker_program(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  constexpr std::size_t kWords = 7;
  const auto parent = words.size() == kWords ? parse_int(words[2]) : Result<std::int64_t>(0);
  const auto generation = words.size() == kWords ? parse_int(words[3]) : Result<std::int64_t>(0);
  auto boards = words.size() == kWords ? nvml::Selection::parse(words[6]) : Result<nvml::Selection>();
  if (!parent || !generation || *parent <= 0 || *generation <= 0 || words[4] != "nvml" || !boards) {
    log::error("worker", "this sub-program is started by flyball itself, not by hand");
    return static_cast<int>(ErrorCode::input);
  }
  if (const Result<> tied = become_worker(static_cast<pid_t>(*parent)); !tied) {
    log::error("worker", "{}", tied.error().message());
    return 1;
  }
  SystemClock clock;
  nvml::NvmlOptions options;
  options.library = words[5];
  options.selection = *std::move(boards);
  return serve(kWorkerDescriptor, static_cast<std::uint64_t>(*generation),
               [&] { return nvml::make_nvml_driver(options, clock); });
}

}  // namespace flyball::worker
