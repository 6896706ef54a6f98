#pragma once
// The control socket: one SEQPACKET message is one command, its answer is one message. Server and client.

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "fakegpu/node.h"

namespace flyball::fakegpu {

/// Beside the page, so that whoever finds one finds the other.
std::string control_path(const std::string& page_path);

class ControlServer {
 public:
  static Result<std::unique_ptr<ControlServer>> listen(const std::string& path);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// Waits up to `time` for commands and answers them.
  void serve(Node& node, Seconds time);
  /// "stop" was received.
  bool stop_asked() const { return stop_asked_; }

 private:
  ControlServer(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  void accept_client();
  /// False when the client is done.
  bool answer(Node& node, int client);

  static constexpr std::size_t kMaxClients = 16;
  std::string path_;
  int fd_;
  std::vector<int> clients_;
  bool stop_asked_ = false;
};

/// Sends one command and returns the answer; waits at most two minutes (a long `step` of many GPUs takes its time).
Result<std::string> send_command(const std::string& path, const Words& words);

/// Owns the page and runs until `stop` is set or a client asks for it. Time is real unless `paused`.
Result<> serve(Node& node, PageOwner& page, ControlServer& control, bool paused,
               const volatile std::sig_atomic_t& stop);

}  // namespace flyball::fakegpu
