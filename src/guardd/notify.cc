#include "guardd/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.h"
#include "base/text.h"

namespace flyball::guardd {

void notify(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(path);
  if (length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.ok()) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                 size);
}

std::optional<Seconds> watchdog_period() {
  const char* text = std::getenv("WATCHDOG_USEC");
  if (text == nullptr) return std::nullopt;
  const auto microseconds = parse_int(text);
  if (!microseconds || *microseconds <= 0) return std::nullopt;
  const char* pid = std::getenv("WATCHDOG_PID");
  const auto meant = pid == nullptr ? Result<std::int64_t>(::getpid()) : parse_int(pid);
  if (!meant || *meant != ::getpid()) return std::nullopt;
  return Seconds(static_cast<double>(*microseconds) * 1e-6 / 2);
}

}  // namespace flyball::guardd
