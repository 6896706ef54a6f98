#pragma once
// The owner's side of the page: it creates the file, holds its lock for life, publishes records and frees slots.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "fakegpu/page.h"

namespace flyball::fakegpu {

/// $FLYBALL_FAKEGPU, or flyball-fakegpu.page in $XDG_RUNTIME_DIR or /run; the library looks in the same order.
std::string default_page_path();

/// Start time of a process in clock ticks since boot; 0 if it is not there. With the pid, it names a process for good.
std::uint64_t process_start(pid_t pid);

class PageOwner {
 public:
  /// Replaces the page of a dead owner; a living one is an error that names it.
  static Result<std::unique_ptr<PageOwner>> create(const std::string& path, std::uint32_t gpus);
  /// Lets the lock go and leaves the file, as a crash does; `remove` first is the clean way.
  ~PageOwner();
  PageOwner(const PageOwner&) = delete;
  PageOwner& operator=(const PageOwner&) = delete;

  /// A reader sees the old record or the new one, never a mixture. `sequence` of `record` is ignored.
  void publish(std::uint32_t gpu, const fg_gpu& record);
  void set_state(fg_page_state state);
  /// Ends all sessions: their calls return `code` until they start anew.
  void begin_epoch(std::uint32_t ended_session_code);
  void heartbeat();
  /// How long clients wait for the acknowledgement of a setter.
  void set_setter_timeout(Seconds time);
  std::span<fg_slot> slots();
  const std::string& path() const { return path_; }
  /// False once another owner has put its page in this one's place.
  bool in_place() const;
  void remove();

 private:
  PageOwner(std::string path, int fd, unsigned char* page, std::uint32_t size);
  fg_header& header() { return *reinterpret_cast<fg_header*>(page_); }

  std::string path_;
  int fd_;
  unsigned char* page_;
  std::uint32_t size_;
};

}  // namespace flyball::fakegpu
