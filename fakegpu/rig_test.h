#pragma once
// For tests: a fake node in this process, served by a thread as the real owner serves it, and the real library over it.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/temp_dir.h"
#include "fakegpu/lib/nvml_api.h"
#include "fakegpu/node.h"
#include "fakegpu/page_owner.h"

namespace flyball::fakegpu {

inline std::filesystem::path build_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }
inline std::string library_path() { return (build_folder() / "fakegpu" / "libnvidia-ml.so.1").string(); }

/// The library as clients get it: by dlopen and the public names alone.
class Nvml {
 public:
  Nvml() : handle_(dlopen(library_path().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }
  ~Nvml() { dlclose(handle_); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void* symbol(const char* name) const { return dlsym(handle_, name); }

  template <class Function, class... Args>
  auto call(const char* name, Args... args) const {
    auto* function = reinterpret_cast<Function*>(symbol(name));
    if (function == nullptr) ADD_FAILURE() << name << " is not exported";
    return function(args...);
  }

 private:
  void* handle_;
};

#define NVML(library, name, ...) (library).call<decltype(::name)>(#name __VA_OPT__(, ) __VA_ARGS__)

inline twin::MachineParameters rig_parameters(std::uint64_t gpus = 2) {
  twin::MachineParameters p;
  p.gpu = *twin::gpu_preset("h100-sxm5-80gb");
  p.gpus = gpus;
  p.tick = Seconds(0.02);
  return p;
}

class Rig {
 public:
  explicit Rig(const twin::MachineParameters& parameters = rig_parameters()) {
    setenv("FLYBALL_FAKEGPU", path().c_str(), 1);
    start(parameters);
  }
  ~Rig() {
    stop();
    if (owner_) owner_->remove();
    unsetenv("FLYBALL_FAKEGPU");
  }

  std::string path() const { return folder_.file("page"); }
  void start(const twin::MachineParameters& parameters) {
    auto owner = PageOwner::create(path(), static_cast<std::uint32_t>(parameters.gpus));
    ASSERT_TRUE(owner) << owner.error().message();
    owner_ = std::move(*owner);
    node_.emplace(*twin::Machine::create(parameters), *board_kind("h100-sxm5-80gb"), *owner_, WallTime(0));
    node_->publish();
    owner_->set_state(FG_READY);
    serve();
  }
  void serve() {
    stop_ = false;
    server_ = std::thread([this] {
      while (!stop_) {
        {
          const std::lock_guard lock(mutex_);
          node_->serve_slots();
        }
        std::this_thread::yield();
      }
    });
  }
  /// As an owner that is stopped: the page stays, nobody serves.
  void stop() {
    stop_ = true;
    if (server_.joinable()) server_.join();
  }
  /// As kill -9: the page stays as it is, its lock is gone.
  void die() {
    stop();
    node_.reset();
    owner_.reset();
  }

  /// The answer's number at a JSON pointer.
  double number(const Words& words, const std::string& pointer);
  void command(const Words& words) { number(words, ""); }
  void fault(std::initializer_list<const char*> words) {
    Words all{"fault"};
    all.insert(all.end(), words.begin(), words.end());
    command(all);
  }
  void step(double seconds) { command({"step", std::to_string(seconds) + "s"}); }
  /// A number of the board's status: what is really so.
  double truth(const std::string& key, std::size_t gpu = 0) {
    return number({"status"}, "/gpus/" + std::to_string(gpu) + "/" + key);
  }
  std::string uuid(std::size_t gpu) { return node_->machine().gpus()[gpu].id().text(); }
  PageOwner& owner() { return *owner_; }
  Node& node() { return *node_; }

 private:
  TempDir folder_;
  std::unique_ptr<PageOwner> owner_;
  std::optional<Node> node_;
  std::mutex mutex_;
  std::thread server_;
  std::atomic<bool> stop_{false};
};

}  // namespace flyball::fakegpu
