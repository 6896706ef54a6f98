#include "fakegpu/node.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "fakegpu/lib/nvml_api.h"

namespace flyball::fakegpu {

namespace {

using Json = nlohmann::ordered_json;  // documents begin with their schema

constexpr Seconds kLongestStep(86'400);
constexpr Seconds kSlotPatience(5);                      // before a slot of a dead client is freed
constexpr double kMemoryUsedFraction = 0.8;              // memory is not modelled: a training job fills it
constexpr std::uint32_t kBusyState = 0, kIdleState = 8;  // P0, P8

std::uint32_t milliwatts(Watts p) { return static_cast<std::uint32_t>(std::lround(p.value() * 1000)); }
std::uint32_t megahertz(Hertz f) { return static_cast<std::uint32_t>(std::lround(f.value() / 1e6)); }
std::uint32_t whole(double x) { return static_cast<std::uint32_t>(std::lround(std::max(0.0, x))); }

void move_slot(fg_slot& slot, std::uint32_t from, std::uint32_t to, std::uint32_t if_gone) {
  if (!__atomic_compare_exchange_n(&slot.state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&slot.state, if_gone, __ATOMIC_RELEASE);
  }
}

bool client_gone(const fg_slot& slot) {
  const auto now = static_cast<std::uint64_t>(SystemClock().now().nanoseconds());
  const auto patience = static_cast<std::uint64_t>(kSlotPatience.value() * 1e9);
  if (slot.claimed == 0 || now < slot.claimed + patience) return false;
  return kill(static_cast<pid_t>(slot.client_pid), 0) != 0 && errno == ESRCH;
}

}  // namespace

Node::Node(twin::Machine machine, const BoardKind& kind, PageOwner& page, WallTime start)
    : machine_(std::move(machine)), kind_(kind), page_(page), start_(start), boards_(machine_.gpus().size()) {}

void Node::serve_slots() {
  for (fg_slot& slot : page_.slots()) {
    switch (__atomic_load_n(&slot.state, __ATOMIC_ACQUIRE)) {
      case FG_SLOT_POSTED: {
        std::uint32_t posted = FG_SLOT_POSTED;
        if (!__atomic_compare_exchange_n(&slot.state, &posted, FG_SLOT_TAKEN, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
          break;
        }
        slot.result = execute(slot);
        // The client sees its own write in the next reading.
        publish();
        move_slot(slot, FG_SLOT_TAKEN, FG_SLOT_DONE, FG_SLOT_FREE);
        break;
      }
      case FG_SLOT_ABANDONED:
        __atomic_store_n(&slot.state, FG_SLOT_FREE, __ATOMIC_RELEASE);
        break;
      case FG_SLOT_CLAIMED:
      case FG_SLOT_DONE:
        if (client_gone(slot)) __atomic_store_n(&slot.state, FG_SLOT_FREE, __ATOMIC_RELEASE);
        break;
      default:
        break;
    }
  }
}

std::uint32_t Node::execute_set_limit(twin::Gpu& gpu, std::uint32_t limit) {
  const Milliwatts asked(limit);
  if (asked < Milliwatts::from(gpu.parameters().minimum_limit) ||
      asked > Milliwatts::from(gpu.parameters().maximum_limit)) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  gpu.set_limit(asked);
  return NVML_SUCCESS;
}

// The page may be written by whoever may set limits: nothing in a slot is trusted.
std::uint32_t Node::execute(const fg_slot& slot) {
  const std::uint32_t index = slot.gpu;
  if (index >= boards_.size()) return NVML_ERROR_INVALID_ARGUMENT;
  twin::Gpu& gpu = machine_.gpus()[index];
  if (gpu.lost()) return NVML_ERROR_GPU_IS_LOST;
  ++setters_;
  if (boards_[index].lies) return NVML_SUCCESS;
  switch (slot.operation) {
    case FG_SET_LIMIT:
      return execute_set_limit(gpu, slot.a);
    case FG_LOCK_CLOCKS:
      if (slot.a > slot.b) return NVML_ERROR_INVALID_ARGUMENT;
      gpu.lock_clocks({Hertz(slot.a * 1e6), Hertz(slot.b * 1e6)});
      return NVML_SUCCESS;
    case FG_RESET_CLOCKS:
      gpu.reset_clocks();
      return NVML_SUCCESS;
    case FG_SET_PERSISTENCE:
      boards_[index].persistence = slot.a != 0;
      return NVML_SUCCESS;
    default:
      return NVML_ERROR_INVALID_ARGUMENT;
  }
}

fg_gpu Node::record_of(std::size_t index) const {
  const twin::Gpu& gpu = machine_.gpus()[index];
  const twin::GpuParameters& p = gpu.parameters();
  const twin::GpuTruth truth = gpu.truth();
  const Board& board = boards_[index];
  fg_gpu r{};
  r.index = static_cast<std::uint32_t>(index);
  std::snprintf(r.uuid, sizeof r.uuid, "%s", gpu.id().text().c_str());
  std::snprintf(r.name, sizeof r.name, "%s", p.name.c_str());
  std::snprintf(r.serial, sizeof r.serial, "%013llu", 1650000000000ULL + machine_.parameters().seed * 1000 + index);
  r.pci_bus = static_cast<std::uint32_t>(0x10 + index);
  std::snprintf(r.bus_id, sizeof r.bus_id, "%08X:%02X:00.0", r.pci_domain, r.pci_bus);
  r.pci_device_id = kind_.pci_device_id;
  r.pci_subsystem_id = kind_.pci_subsystem_id;
  r.architecture = kind_.architecture;
  r.compute_major = kind_.compute_major;
  r.compute_minor = kind_.compute_minor;
  const auto flag = [&r](bool on, fg_gpu_flag bit) { r.flags |= on ? static_cast<std::uint32_t>(bit) : 0U; };
  flag(p.has_energy_counter, FG_HAS_ENERGY);
  flag(p.has_instant_power, FG_HAS_INSTANT);
  flag(p.sensor_average > Seconds(0), FG_HAS_AVERAGE);
  flag(p.has_fan, FG_HAS_FAN);
  flag(gpu.lost(), FG_LOST);
  flag(board.mig, FG_MIG);
  flag(board.persistence, FG_PERSISTENCE);
  r.power_average_mw = milliwatts(gpu.sensor().average());
  r.power_instant_mw = milliwatts(gpu.sensor().instant());
  r.energy_mj = static_cast<std::uint64_t>(std::llround(gpu.sensor().counter().value() * 1000));
  const Seconds refreshed = p.sensor_period * static_cast<double>(gpu.sensor().refreshes());
  r.sensor_time_us = static_cast<std::uint64_t>((start_ + refreshed).nanoseconds() / 1000);
  r.limit_requested_mw = static_cast<std::uint32_t>(truth.limit_requested.value());
  r.limit_enforced_mw = static_cast<std::uint32_t>(truth.limit_enforced.value());
  r.limit_minimum_mw = milliwatts(p.minimum_limit);
  r.limit_maximum_mw = milliwatts(p.maximum_limit);
  r.limit_default_mw = milliwatts(p.default_limit);
  r.throttle_reasons = truth.throttle.bits;
  r.memory_total = p.memory_bytes;
  const bool idle = (truth.throttle.bits & ThrottleReasons::kIdle) != 0;
  r.memory_used = idle ? 0 : static_cast<std::uint64_t>(kMemoryUsedFraction * static_cast<double>(p.memory_bytes));
  r.utilization_gpu = whole(truth.utilisation_fraction * 100);
  r.temperature = whole(truth.temperature.value());
  r.temperature_slowdown = whole(p.slowdown_temperature.value());
  r.temperature_shutdown = whole(p.shutdown_temperature.value());
  r.sm_clock = megahertz(truth.sm_clock);
  r.memory_clock = megahertz(truth.memory_clock);
  r.sm_clock_maximum = megahertz(p.maximum_clock);
  r.sm_clock_minimum = megahertz(p.minimum_clock);
  r.memory_clock_maximum = megahertz(p.memory_clock);
  if (const auto locked = gpu.locked_clocks()) {
    r.locked_low = megahertz(locked->low);
    r.locked_high = megahertz(locked->high);
  }
  r.fan = whole(truth.fan_fraction * 100);
  r.performance_state = idle ? kIdleState : kBusyState;
  board.faults.write(r);
  return r;
}

void Node::publish() {
  for (std::size_t i = 0; i < boards_.size(); ++i) page_.publish(static_cast<std::uint32_t>(i), record_of(i));
  page_.heartbeat();
}

Result<std::string> Node::command(const Words& words) {
  const std::string name = words.empty() ? "" : words.front();
  Result<std::string> answer;
  if (name == "fault") {
    answer = fault(words);
  } else if (name == "step") {
    answer = step(words);
  } else if (name == "status") {
    answer = status();
  } else if (name == "jobs") {
    answer = jobs();
  } else {
    answer = fail(ErrorCode::input, fmt::format("there is no command '{}'", name.substr(0, 40)), {},
                  "use fault, step, status, jobs or stop");
  }
  publish();
  return answer;
}

Result<std::string> Node::step(const Words& words) {
  if (words.size() != 2) return fail(ErrorCode::input, "step takes one duration", "step", "write `step 10s`");
  FLYBALL_ASSIGN(const Seconds time, parse_seconds(words[1]));
  if (!(time > Seconds(0) && time <= kLongestStep)) {
    return fail(ErrorCode::input, fmt::format("a step of {} is outside 0 to {}", words[1], format(kLongestStep)),
                "step");
  }
  serve_slots();
  machine_.advance(time);
  return Json{{"schema", "flyball.fakegpu_step/1"}, {"time_s", static_cast<double>(machine_.now().nanoseconds()) / 1e9}}
      .dump();
}

std::string Node::status() const {
  Json gpus = Json::array();
  for (std::size_t i = 0; i < boards_.size(); ++i) {
    const twin::Gpu& gpu = machine_.gpus()[i];
    const twin::GpuTruth truth = gpu.truth();
    Json g{{"uuid", gpu.id().text()},
           {"index", i},
           {"name", gpu.parameters().name},
           {"lost", gpu.lost()},
           {"mig", boards_[i].mig},
           {"persistence", boards_[i].persistence},
           {"true_power_w", truth.power.value()},
           {"true_energy_j", truth.energy.value()},
           {"sensor_average_w", gpu.sensor().average().value()},
           {"sensor_instant_w", gpu.sensor().instant().value()},
           {"counter_j", gpu.sensor().counter().value()},
           {"temperature_celsius", truth.temperature.value()},
           {"sm_clock_hz", truth.sm_clock.value()},
           {"limit_requested_mw", truth.limit_requested.value()},
           {"limit_enforced_mw", truth.limit_enforced.value()},
           {"throttle", to_string(truth.throttle)},
           {"speed_fraction", truth.rate},
           {"busy_fraction", truth.busy_fraction},
           {"locked_clocks_hz", nullptr}};
    if (const auto locked = gpu.locked_clocks()) {
      g["locked_clocks_hz"] = {locked->low.value(), locked->high.value()};
    }
    gpus.push_back(std::move(g));
  }
  Json parameters = Json::object();
  for (const twin::ParameterInfo& info : twin::list_parameters(machine_.parameters())) {
    parameters[info.key] = info.value;
  }
  return Json{{"schema", "flyball.fakegpu_status/1"},
              {"page", page_.path()},
              {"time_s", static_cast<double>(machine_.now().nanoseconds()) / 1e9},
              {"setters", setters_},
              {"preset", kind_.preset},
              {"gpus", std::move(gpus)},
              {"job", Json::parse(jobs())},
              {"parameters", std::move(parameters)}}
      .dump();
}

std::string Node::jobs() const {
  const twin::Job& job = machine_.job();
  const twin::StepRecord& last = job.last_step();
  return Json{{"schema", "flyball.fakegpu_jobs/1"},
              {"phase", to_string(job.phase())},
              {"steps", job.steps()},
              {"tokens", job.tokens()},
              {"true_tokens", job.exact_tokens()},
              {"stalled", job.stalled()},
              {"last_step_time_s", last.number > 0 ? Json(last.duration.value()) : Json()},
              {"last_step_age_s", last.number > 0 ? Json((machine_.now() - last.ended).value()) : Json()},
              {"gpus", boards_.size()}}
      .dump();
}

void Node::reload_driver() {
  for (std::size_t i = 0; i < boards_.size(); ++i) {
    if (!boards_[i].persistence) machine_.gpus()[i].reload_driver();
  }
}

}  // namespace flyball::fakegpu
