#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "cli/doctor.h"

namespace flyball::cli {
namespace {

constexpr std::size_t kSmallFile = 64 * 1024;

Finding finding(Severity severity, std::string code, std::string what, std::string remedy = {}) {
  Finding made;
  made.severity = severity;
  made.code = std::move(code);
  made.what = std::move(what);
  made.remedy = std::move(remedy);
  return made;
}

std::string content(Filesystem& files, const std::string& path) {
  return files.read(path, kSmallFile).value_or(std::string());
}

/// The folder itself, or the nearest above it that is there.
std::string nearest_existing(std::string folder) {
  std::error_code ignored;
  while (!folder.empty() && folder != "/" && !std::filesystem::exists(folder, ignored)) {
    folder = std::filesystem::path(folder).parent_path().string();
  }
  return folder.empty() ? "." : folder;
}

}  // namespace

Finding check_kernel(Filesystem& files) {
  const std::string text = content(files, "/proc/sys/kernel/osrelease");
  const std::string release(trim(text));
  const auto parts = split(release, '.');
  const auto major = parse_int(parts.front());
  const auto minor = parse_int(parts.size() > 1 ? parts[1] : "");
  if (!major || !minor) {
    return finding(Severity::warning, "kernel", "the kernel's version cannot be read",
                   "mount /proc, or run outside of the sandbox");
  }
  if (*major * 1000 + *minor < 5003) {
    return finding(Severity::alarm, "kernel",
                   "Linux " + release + " has no pidfd_open, by which the guard sees that a client died",
                   "use Linux 5.3 or newer");
  }
  return finding(Severity::info, "kernel", "Linux " + release);
}

Finding check_container(Filesystem& files) {
  const char* mark = files.exists("/.dockerenv")          ? "/.dockerenv"
                     : files.exists("/run/.containerenv") ? "/run/.containerenv"
                                                          : nullptr;
  const std::string groups = content(files, "/proc/self/cgroup");
  const bool unified = files.exists("/sys/fs/cgroup/cgroup.controllers");
  const std::string kind = unified          ? "control groups v2"
                           : groups.empty() ? "control groups not visible"
                                            : "control groups v1";
  if (mark != nullptr) {
    return finding(Severity::warning, "container", fmt::format("inside a container ({}), {}", mark, kind),
                   "indices of GPUs differ from the host's, names do not; the guard belongs on the host");
  }
  return finding(Severity::info, "container", "no container seen, " + kind);
}

Finding check_user() {
  if (::geteuid() != 0) return finding(Severity::info, "user", fmt::format("unprivileged (user id {})", ::geteuid()));
  return finding(Severity::warning, "user", "runs as root, which only flyball-guard needs",
                 "run it as a user in the group of the guard's socket");
}

Finding check_state_dir(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder, error)) {
    if (!std::filesystem::is_directory(folder, error)) {
      return finding(Severity::alarm, "state_dir", folder + " is not a folder", "name another with --state-dir");
    }
    if (::access(folder.c_str(), W_OK | X_OK) == 0)
      return finding(Severity::info, "state_dir", folder + " is writable");
    return finding(Severity::alarm, "state_dir", folder + " cannot be written to by this user",
                   "change its owner, or name another with --state-dir");
  }
  const std::string parent = nearest_existing(folder);
  if (::access(parent.c_str(), W_OK | X_OK) == 0) {
    return finding(Severity::info, "state_dir", folder + " will be made at the first run");
  }
  return finding(Severity::alarm, "state_dir", fmt::format("{} is not there and cannot be made in {}", folder, parent),
                 "make it, or name another with --state-dir");
}

Finding check_disk_space(const std::string& folder) {
  // A day of eight GPUs at 0.5 s is about 1.4 million readings, some tens of megabytes compressed.
  constexpr double kLeast = 100e6;
  constexpr double kComfortable = 1e9;
  const std::string place = nearest_existing(folder);
  struct statvfs disk {};
  if (::statvfs(place.c_str(), &disk) != 0) {
    return finding(Severity::warning, "disk", fmt::format("{}: {}", place, std::strerror(errno)), "check the mount");
  }
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  const std::string what = fmt::format("{:.1f} GB free under {}", free / 1e9, place);
  if (free < kLeast) return finding(Severity::alarm, "disk", what, "free some space: at a full disk no lease is given");
  if (free < kComfortable) return finding(Severity::warning, "disk", what, "free some space before a long recording");
  return finding(Severity::info, "disk", what);
}

Finding check_clock(const Clock& clock) {
  constexpr WallTime kProgramIsYounger(1'764'547'200'000'000'000);  // 2025-12-01
  const WallTime now = clock.wall();
  const std::string shown = format_rfc3339(now);
  if (now < kProgramIsYounger) {
    return finding(Severity::alarm, "clock", shown + " is before this program was made", "set the clock");
  }
  timex state{};
  const int answer = ::adjtimex(&state);
  if (answer < 0) return finding(Severity::info, "clock", shown + ", synchronisation not visible here");
  if (answer == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
    return finding(Severity::warning, "clock", shown + ", not synchronised",
                   "run an NTP client: recordings of several machines are joined by UTC");
  }
  return finding(Severity::info, "clock", shown + ", synchronised");
}

Finding check_config(const std::string& path, Filesystem& files) {
  if (path.empty()) return finding(Severity::info, "config", "no file; the defaults hold");
  const auto text = files.read(path, kLargestConfig);
  if (!text) return finding(Severity::alarm, "config", text.error().message(), "check --config");
  const auto settings = parse_settings(*text, path);
  if (settings) return finding(Severity::info, "config", path + " is valid");
  return finding(
      Severity::alarm, "config",
      fmt::format("{} has {} faults, the first: {}", path, settings.error().size(), settings.error().front().message()),
      "flyball config check " + path);
}

}  // namespace flyball::cli
