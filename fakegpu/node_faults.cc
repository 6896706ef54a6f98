// The fault commands: what each does to a board, and how it is written.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "fakegpu/lib/nvml_api.h"
#include "fakegpu/node.h"

namespace flyball::fakegpu {

struct Node::FaultCommand {
  std::string name;
  std::string usage;
  std::size_t arguments;
  /// `words` are the arguments alone; `board` indexes one of those selected.
  std::function<Result<>(Node&, std::size_t board, const Words& words)> apply;
  bool whole_node = false;  ///< done once, whatever boards are selected
};

namespace {

Result<bool> parse_switch(const std::string& word) {
  if (word == "on") return true;
  if (word == "off") return false;
  return fail(ErrorCode::input, fmt::format("'{}' is neither on nor off", word.substr(0, 40)));
}

Result<std::optional<Milliwatts>> parse_ceiling(const std::string& word) {
  if (word == "off") return std::optional<Milliwatts>();
  FLYBALL_ASSIGN(const Watts limit, parse_watts(word));
  return std::optional<Milliwatts>(Milliwatts::from(limit));
}

Result<> for_calls(CallFaults& faults, const std::string& name, const std::function<void(CallFaults&, fg_call)>& set) {
  FLYBALL_ASSIGN(const std::vector<fg_call> calls, parse_calls(name));
  for (const fg_call call : calls) set(faults, call);
  return {};
}

Result<std::uint32_t> parse_number(const std::string& word) {
  FLYBALL_ASSIGN(const std::int64_t value, parse_int(word));
  if (value < 0 || value > 0xffffffffLL) {
    return fail(ErrorCode::input, fmt::format("{} does not fit in 32 bits", value));
  }
  return static_cast<std::uint32_t>(value);
}

/// A command whose one word is on or off.
template <class Set>
auto switched(Set set) {
  return [set](Node& n, std::size_t i, const Words& w) -> Result<> {
    FLYBALL_ASSIGN(const bool on, parse_switch(w[0]));
    set(n, i, on);
    return {};
  };
}

}  // namespace

// What the library answers in place of the truth.
std::vector<Node::FaultCommand> Node::call_faults() {
  using W = const Words&;
  return {
      {"return", "CALL CODE", 2,
       [](Node& n, std::size_t i, W w) -> Result<> {
         FLYBALL_ASSIGN(const std::uint16_t code, parse_return_code(w[1]));
         return for_calls(n.boards_[i].faults, w[0], [code](CallFaults& f, fg_call c) { f.force_code(c, code); });
       }},
      {"no-permission", "", 0,
       [](Node& n, std::size_t i, W) {
         return for_calls(n.boards_[i].faults, "setters",
                          [](CallFaults& f, fg_call c) { f.force_code(c, NVML_ERROR_NO_PERMISSION); });
       }},
      {"unsupported", "CALL", 1,
       [](Node& n, std::size_t i, W w) {
         return for_calls(n.boards_[i].faults, w[0],
                          [](CallFaults& f, fg_call c) { f.force_code(c, NVML_ERROR_NOT_SUPPORTED); });
       }},
      {"hang", "CALL", 1,
       [](Node& n, std::size_t i, W w) {
         return for_calls(n.boards_[i].faults, w[0], [](CallFaults& f, fg_call c) { f.hang(c); });
       }},
      {"value", "CALL NUMBER", 2,
       [](Node& n, std::size_t i, W w) -> Result<> {
         FLYBALL_ASSIGN(const std::uint32_t value, parse_number(w[1]));
         return for_calls(n.boards_[i].faults, w[0], [value](CallFaults& f, fg_call c) { f.show_value(c, value); });
       }},
      {"sentinel", "CALL", 1,
       [](Node& n, std::size_t i, W w) {
         return for_calls(n.boards_[i].faults, w[0], [](CallFaults& f, fg_call c) { f.show_value(c, kSentinel); });
       }},
      {"field", "ID CODE", 2,
       [](Node& n, std::size_t i, W w) -> Result<> {
         FLYBALL_ASSIGN(const std::uint32_t field, parse_number(w[0]));
         FLYBALL_ASSIGN(const std::uint16_t code, parse_return_code(w[1]));
         return n.boards_[i].faults.break_field(field, code, false);
       }},
      {"poison", "ID", 1,
       [](Node& n, std::size_t i, W w) -> Result<> {
         FLYBALL_ASSIGN(const std::uint32_t field, parse_number(w[0]));
         return n.boards_[i].faults.break_field(field, NVML_SUCCESS, true);
       }},
  };
}

// What happens to one board.
std::vector<Node::FaultCommand> Node::board_faults() {
  using W = const Words&;
  return {
      {"lost", "on|off", 1, switched([](Node& n, std::size_t i, bool on) { n.machine_.gpus()[i].set_lost(on); })},
      {"brake", "on|off", 1, switched([](Node& n, std::size_t i, bool on) { n.machine_.gpus()[i].set_brake(on); })},
      {"lie", "on|off", 1, switched([](Node& n, std::size_t i, bool on) { n.boards_[i].lies = on; })},
      {"mig", "on|off", 1, switched([](Node& n, std::size_t i, bool on) { n.boards_[i].mig = on; })},
      {"persistence", "on|off", 1, switched([](Node& n, std::size_t i, bool on) { n.boards_[i].persistence = on; })},
      {"foreign-limit", "POWER", 1,
       [](Node& n, std::size_t i, W w) -> Result<> {
         FLYBALL_ASSIGN(const Watts limit, parse_watts(w[0]));
         n.machine_.gpus()[i].set_limit(Milliwatts::from(limit));
         return {};
       }},
      {"bmc", "POWER|off", 1,
       [](Node& n, std::size_t i, W w) -> Result<> {
         FLYBALL_ASSIGN(const auto ceiling, parse_ceiling(w[0]));
         n.machine_.gpus()[i].set_external_ceiling(ceiling);
         return {};
       }},
      {"counter-reset", "", 0,
       [](Node& n, std::size_t i, W) -> Result<> {
         n.machine_.gpus()[i].sensor().reset_counter();
         return {};
       }},
      {"clear", "", 0,
       [](Node& n, std::size_t i, W) -> Result<> {
         n.boards_[i].faults.clear();
         n.boards_[i].lies = n.boards_[i].mig = false;
         n.machine_.gpus()[i].set_lost(false);
         n.machine_.gpus()[i].set_brake(false);
         n.machine_.gpus()[i].set_external_ceiling(std::nullopt);
         n.machine_.job().set_hung(false);
         n.page_.set_state(FG_READY);
         return {};
       }},
  };
}

// What happens to the job and to the driver.
std::vector<Node::FaultCommand> Node::node_faults() {
  using W = const Words&;
  return {
      {"hung-job", "on|off", 1, switched([](Node& n, std::size_t, bool on) { n.machine_.job().set_hung(on); }), true},
      {"reload", "", 0,
       [](Node& n, std::size_t, W) -> Result<> {
         n.reload_driver();
         n.page_.begin_epoch(NVML_ERROR_UNINITIALIZED);
         return {};
       },
       true},
      {"end-sessions", "CODE", 1,
       [](Node& n, std::size_t, W w) -> Result<> {
         FLYBALL_ASSIGN(const std::uint16_t code, parse_return_code(w[0]));
         n.page_.begin_epoch(code);
         return {};
       },
       true},
      {"not-ready", "on|off", 1,
       switched([](Node& n, std::size_t, bool on) { n.page_.set_state(on ? FG_STARTING : FG_READY); }), true},
  };
}

const std::vector<Node::FaultCommand>& Node::fault_commands() {
  static const std::vector<FaultCommand> commands = [] {
    std::vector<FaultCommand> all = call_faults();
    for (const auto& more : {board_faults(), node_faults()}) all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return commands;
}

Result<std::vector<std::size_t>> Node::select(const std::string& which) const {
  std::vector<std::size_t> chosen;
  const auto index = parse_int(which);
  for (std::size_t i = 0; i < boards_.size(); ++i) {
    const bool by_index = index && *index == static_cast<std::int64_t>(i);
    if (which == "all" || by_index || machine_.gpus()[i].id().text() == which) chosen.push_back(i);
  }
  if (!chosen.empty()) return chosen;
  return fail(ErrorCode::input, fmt::format("there is no GPU '{}'", which.substr(0, 60)), "--gpu",
              "give a UUID, an index or all");
}

Result<std::string> Node::fault(const Words& words) {
  std::string which = "all";
  Words rest;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--gpu" && i + 1 < words.size()) {
      which = words[++i];
    } else {
      rest.push_back(words[i]);
    }
  }
  std::string usages;
  for (const FaultCommand& command : fault_commands()) {
    usages += fmt::format("{}{} {}", usages.empty() ? "" : "; ", command.name, command.usage);
    if (rest.empty() || rest.front() != command.name) continue;
    const Words arguments(rest.begin() + 1, rest.end());
    if (arguments.size() != command.arguments) {
      return fail(ErrorCode::input, fmt::format("fault {} takes {} arguments", command.name, command.arguments), {},
                  fmt::format("write `fault {} {}`", command.name, command.usage));
    }
    FLYBALL_ASSIGN(const std::vector<std::size_t> boards, select(which));
    for (const std::size_t board : boards) {
      FLYBALL_TRY(command.apply(*this, board, arguments));
      if (command.whole_node) break;
    }
    return nlohmann::ordered_json{
        {"schema", "flyball.fakegpu_fault/1"}, {"fault", command.name}, {"gpus", boards.size()}}
        .dump();
  }
  return fail(ErrorCode::input, fmt::format("there is no fault '{}'", rest.empty() ? "" : rest.front().substr(0, 40)),
              {}, "use [--gpu UUID|INDEX|all] and one of: " + usages);
}

}  // namespace flyball::fakegpu
