#include "control/fake_job.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/descriptor.h"

namespace flyball::control {
namespace {

constexpr int kPatienceMicroseconds = 100'000;
constexpr std::size_t kLongestAnswer = 16 * 1024;

/// The owner's answer to `jobs`; empty when there is none.
std::string ask(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return {};
  const timeval patience{0, kPatienceMicroseconds};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  constexpr std::string_view kQuestion = R"(["jobs"])";
  if (::send(socket.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) < 0) return {};
  std::string answer(kLongestAnswer, '\0');
  const ssize_t size = ::recv(socket.get(), answer.data(), answer.size(), 0);
  answer.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return answer;
}

}  // namespace

Sample<WorkloadProgress> FakeJob::progress() {
  const MonoTime now = clock_.now();
  const auto whole = nlohmann::json::parse(ask(socket_), nullptr, false);
  if (!whole.is_object() || !whole.contains("result") || !whole["result"].is_object()) {
    return Sample<WorkloadProgress>::absent(Status::missing);
  }
  const auto& answer = whole["result"];
  const auto count = [&](const char* key) {
    const auto found = answer.find(key);
    return found != answer.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
  };
  if (!first_asked_) first_asked_ = now;
  WorkloadProgress progress;
  progress.steps = count("steps");
  progress.tokens = count("tokens");
  const auto phase = answer.find("phase");
  if (phase != answer.end() && phase->is_string()) {
    progress.phase = parse_phase(phase->get<std::string>()).value_or(Phase::unknown);
  }
  const auto age = answer.find("last_step_age_s");
  // Before its first step, the job's count of zero holds since it was first asked.
  progress.at = age != answer.end() && age->is_number() ? now - Seconds(age->get<double>()) : *first_asked_;
  return progress;
}

}  // namespace flyball::control
