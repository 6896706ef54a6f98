#include "fakegpu/control.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace flyball::fakegpu {

namespace {

using Json = nlohmann::ordered_json;  // documents begin with their schema

constexpr std::size_t kMaxMessage = 128 * 1024;
constexpr time_t kAnswerSeconds = 120;
constexpr Seconds kPeriod(0.01);      // of publication and of looking at slots: driver calls take 10 to 20 ms
constexpr Seconds kLongestGap(3600);  // a suspended machine wakes up: the twin catches up with this much of it
constexpr Seconds kPlaceCheck(1);

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::input,
                fmt::format("the path has {} bytes, a socket's may have {}", path.size(), sizeof address.sun_path - 1),
                path, "choose a shorter --page");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

std::string answer_text(const Result<std::string>& result) {
  if (result) return Json{{"ok", true}, {"result", Json::parse(*result)}}.dump();
  const Error& error = result.error();
  return Json{{"ok", false},
              {"code", error.exit_code()},
              {"what", error.what},
              {"where", error.where},
              {"remedy", error.remedy}}
      .dump();
}

Result<std::string> parse_answer(std::string_view text) {
  const Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object() || !answer.contains("ok")) return fail(ErrorCode::failed, "the answer is not understood");
  if (answer["ok"] == true) return answer["result"].dump();
  const int code = answer.value("code", 1);
  return fail(static_cast<ErrorCode>(std::clamp(code, 1, 5)), answer.value("what", ""), answer.value("where", ""),
              answer.value("remedy", ""));
}

}  // namespace

std::string control_path(const std::string& page_path) { return page_path + ".sock"; }

Result<std::unique_ptr<ControlServer>> ControlServer::listen(const std::string& path) {
  FLYBALL_ASSIGN(const sockaddr_un address, address_of(path));
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  unlink(path.c_str());  // of a dead owner: the page's lock has said that there is no living one
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 16) != 0) {
    const int why = errno;
    if (fd >= 0) close(fd);
    return fail(ErrorCode::failed, fmt::format("cannot listen: {}", std::strerror(why)), path,
                "check that the folder may be written");
  }
  return std::unique_ptr<ControlServer>(new ControlServer(path, fd));
}

ControlServer::~ControlServer() {
  for (const int client : clients_) close(client);
  close(fd_);
  unlink(path_.c_str());
}

void ControlServer::accept_client() {
  const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  if (clients_.size() >= kMaxClients) {  // the one that has been silent for longest
    close(clients_.front());
    clients_.erase(clients_.begin());
  }
  clients_.push_back(client);
}

bool ControlServer::answer(Node& node, int client) {
  std::array<char, 8192> text{};
  const ssize_t size = recv(client, text.data(), text.size(), 0);
  if (size <= 0) return size < 0 && (errno == EAGAIN || errno == EINTR);
  const Json message = Json::parse(text.data(), text.data() + size, nullptr, false);
  Words words;
  bool understood = message.is_array();
  for (const Json& word : message) {
    understood = understood && word.is_string();
    if (understood) words.push_back(word.get<std::string>());
  }
  Result<std::string> result = fail(ErrorCode::input, "a command is a JSON list of words");
  if (understood && words == Words{"stop"}) {
    stop_asked_ = true;
    result = Json{{"schema", "flyball.fakegpu_stop/1"}}.dump();
  } else if (understood) {
    result = node.command(words);
  }
  const std::string reply = answer_text(result);
  return send(client, reply.data(), reply.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(reply.size());
}

void ControlServer::serve(Node& node, Seconds time) {
  std::vector<pollfd> waiting{{fd_, POLLIN, 0}};
  for (const int client : clients_) waiting.push_back({client, POLLIN, 0});
  if (poll(waiting.data(), waiting.size(), static_cast<int>(std::lround(time.value() * 1000))) <= 0) return;
  for (std::size_t i = 1; i < waiting.size(); ++i) {
    const int client = waiting[i].fd;
    if (waiting[i].revents == 0 || answer(node, client)) continue;
    close(client);
    clients_.erase(std::remove(clients_.begin(), clients_.end(), client), clients_.end());
  }
  if (waiting[0].revents != 0) accept_client();
}

Result<std::string> send_command(const std::string& path, const Words& words) {
  FLYBALL_ASSIGN(const sockaddr_un address, address_of(path));
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(ErrorCode::failed, fmt::format("cannot open a socket: {}", std::strerror(errno)));
  const timeval patience{kAnswerSeconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::string message = Json(words).dump();
  std::string text(kMaxMessage, '\0');
  ssize_t size = -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(fd, message.data(), message.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(message.size())) {
    size = recv(fd, text.data(), text.size(), 0);
  }
  const int why = errno;
  close(fd);
  if (size <= 0) {
    return fail(ErrorCode::failed,
                fmt::format("no fakegpu answers here: {}", size == 0 ? "closed" : std::strerror(why)), path,
                "start one with `flyball-fakegpu`, or name its page with --page or FLYBALL_FAKEGPU");
  }
  return parse_answer(std::string_view(text).substr(0, static_cast<std::size_t>(size)));
}

Result<> serve(Node& node, PageOwner& page, ControlServer& control, bool paused,
               const volatile std::sig_atomic_t& stop) {
  const SystemClock clock;
  MonoTime last = clock.now();
  MonoTime checked = last;
  node.publish();
  page.set_state(FG_READY);
  while (stop == 0 && !control.stop_asked()) {
    control.serve(node, kPeriod);
    const MonoTime now = clock.now();
    if (!paused) node.advance(std::min(now - last, kLongestGap));
    last = now;
    node.serve_slots();
    node.publish();
    if (now - checked < kPlaceCheck) continue;
    checked = now;
    if (!page.in_place()) {
      return fail(ErrorCode::failed, "the page was removed or replaced by another owner", page.path(), "start again");
    }
  }
  return {};
}

}  // namespace flyball::fakegpu
