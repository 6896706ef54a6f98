#include "fakegpu/page_owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/text.h"

namespace flyball::fakegpu {

namespace {

constexpr const char* kFileName = "flyball-fakegpu.page";
constexpr int kLockTries = 50;  // a reader that looks whether the owner lives holds the lock for microseconds
constexpr useconds_t kLockWait = 2000;
constexpr mode_t kPageMode = 0644;  // all may read, as with the real driver; who may write it may set

Error system_error(const std::string& doing, const std::string& path) {
  return {ErrorCode::failed, fmt::format("cannot {}: {}", doing, std::strerror(errno)), path,
          "check that the folder exists and may be written"};
}

/// Whether anyone owns the page at `path`, and who.
Result<> refuse_living_owner(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  bool dead = false;
  for (int i = 0; i < kLockTries && !dead; ++i) {
    dead = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!dead) usleep(kLockWait);
  }
  fg_header header{};
  const bool read_header = pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
  close(fd);
  if (dead) return {};
  return fail(ErrorCode::failed,
              fmt::format("another fakegpu owns this page (pid {})", read_header ? header.owner_pid : 0), path,
              "stop it with `flyball-fakegpu stop`, or choose another --page");
}

std::uint64_t boot_time() { return static_cast<std::uint64_t>(SystemClock().now().nanoseconds()); }

}  // namespace

std::string default_page_path() {
  if (const char* set = std::getenv("FLYBALL_FAKEGPU"); set != nullptr && *set != '\0') return set;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return fmt::format("{}/{}", runtime != nullptr && *runtime != '\0' ? runtime : "/run", kFileName);
}

std::uint64_t process_start(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/stat", pid);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 1024> text{};
  const ssize_t size = read(fd, text.data(), text.size());
  close(fd);
  if (size <= 0) return 0;
  // The name in parentheses may hold blanks and parentheses; field 22 is the 20th after the last of them.
  const std::string_view stat(text.data(), static_cast<std::size_t>(size));
  const std::size_t end = stat.rfind(')');
  if (end == std::string_view::npos) return 0;
  const auto fields = split(trim(stat.substr(end + 1)), ' ');
  constexpr std::size_t kStart = 19;
  if (fields.size() <= kStart) return 0;
  return static_cast<std::uint64_t>(parse_int(fields[kStart]).value_or(0));
}

PageOwner::PageOwner(std::string path, int fd, unsigned char* page, std::uint32_t size)
    : path_(std::move(path)), fd_(fd), page_(page), size_(size) {}

PageOwner::~PageOwner() {
  munmap(page_, size_);
  close(fd_);
}

Result<std::unique_ptr<PageOwner>> PageOwner::create(const std::string& path, std::uint32_t gpus) {
  if (gpus < 1 || gpus > FG_MAX_GPUS) {
    return fail(ErrorCode::input, fmt::format("{} GPUs, allowed is 1 to {}", gpus, FG_MAX_GPUS), "--gpus");
  }
  FLYBALL_TRY(refuse_living_owner(path));
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, kPageMode);
  if (fd < 0) return fail(system_error("create the page", temporary));
  const std::uint32_t size = FG_PAGE_SIZE(gpus);
  void* page = MAP_FAILED;
  if (ftruncate(fd, size) == 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
    page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (page == MAP_FAILED) {
    const Error error = system_error("map the page", temporary);
    close(fd);
    unlink(temporary.c_str());
    return fail(error);
  }
  std::unique_ptr<PageOwner> owner(new PageOwner(path, fd, static_cast<unsigned char*>(page), size));
  fg_header& header = owner->header();
  std::memcpy(header.magic, FG_MAGIC, sizeof header.magic);
  header.version = FG_VERSION;
  header.total_size = size;
  header.gpu_count = gpus;
  header.gpu_offset = FG_GPU_OFFSET;
  header.gpu_stride = sizeof(fg_gpu);
  header.slot_offset = FG_SLOT_OFFSET(gpus);
  header.slot_stride = sizeof(fg_slot);
  header.slot_count = FG_SLOTS;
  header.owner_pid = static_cast<std::uint32_t>(getpid());
  header.owner_start = process_start(getpid());
  header.epoch = boot_time() | 1;
  header.setter_timeout_ms = FG_SETTER_TIMEOUT_MS;
  header.cuda_version = 12040;
  std::snprintf(header.driver_version, sizeof header.driver_version, "%s", "550.54.15");
  std::snprintf(header.nvml_version, sizeof header.nvml_version, "%s", "12.550.54.15");
  owner->heartbeat();
  // Complete and locked before anyone can find it.
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = system_error("put the page in place", path);
    unlink(temporary.c_str());
    return fail(error);
  }
  return owner;
}

void PageOwner::publish(std::uint32_t gpu, const fg_gpu& record) {
  constexpr std::size_t kWords = sizeof(fg_gpu) / sizeof(std::uint64_t);
  auto* at = page_ + FG_GPU_OFFSET + gpu * sizeof(fg_gpu);
  auto* sequence = reinterpret_cast<std::uint32_t*>(at);
  auto* to = reinterpret_cast<std::uint64_t*>(at);
  std::array<std::uint64_t, kWords> from{};
  const std::uint32_t before = __atomic_load_n(sequence, __ATOMIC_RELAXED);
  fg_gpu numbered = record;
  numbered.sequence = before + 1;
  std::memcpy(from.data(), &numbered, sizeof numbered);
  __atomic_store_n(sequence, before + 1, __ATOMIC_RELAXED);
  // Each releases the odd number before it: a fence would say the same once, and ThreadSanitizer knows none.
  for (std::size_t i = 0; i < kWords; ++i) __atomic_store_n(to + i, from[i], __ATOMIC_RELEASE);
  __atomic_store_n(sequence, before + 2, __ATOMIC_RELEASE);
}

void PageOwner::set_state(fg_page_state state) {
  __atomic_store_n(&header().state, static_cast<std::uint32_t>(state), __ATOMIC_RELEASE);
}

void PageOwner::begin_epoch(std::uint32_t ended_session_code) {
  __atomic_store_n(&header().ended_session_code, ended_session_code, __ATOMIC_RELAXED);
  __atomic_add_fetch(&header().epoch, 1, __ATOMIC_RELEASE);
}

void PageOwner::heartbeat() { __atomic_store_n(&header().heartbeat, boot_time(), __ATOMIC_RELAXED); }

void PageOwner::set_setter_timeout(Seconds time) {
  __atomic_store_n(&header().setter_timeout_ms, static_cast<std::uint32_t>(time.value() * 1000), __ATOMIC_RELAXED);
}

std::span<fg_slot> PageOwner::slots() { return {reinterpret_cast<fg_slot*>(page_ + header().slot_offset), FG_SLOTS}; }

bool PageOwner::in_place() const {
  struct stat mine {};
  struct stat there {};
  return fstat(fd_, &mine) == 0 && stat(path_.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
         mine.st_dev == there.st_dev;
}

void PageOwner::remove() {
  set_state(FG_CLOSED);
  if (in_place()) unlink(path_.c_str());
}

}  // namespace flyball::fakegpu
