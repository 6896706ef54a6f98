#pragma once
// The fake node: a twin, its driver's state and its faults, published on the page and changed by setters and commands.
// Knows no real time but what it is told; `server` drives it.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "fakegpu/boards.h"
#include "fakegpu/faults.h"
#include "fakegpu/page_owner.h"
#include "twin/machine.h"

namespace flyball::fakegpu {

using Words = std::vector<std::string>;

class Node {
 public:
  /// `page` outlives the node and has as many records as the machine GPUs. `start` is the wall time of the machine's 0.
  Node(twin::Machine machine, const BoardKind& kind, PageOwner& page, WallTime start);

  /// Moves the twin; call publish afterwards.
  void advance(Seconds time) { machine_.advance(time); }
  /// Executes what clients have posted and frees the slots of dead ones.
  void serve_slots();
  void publish();
  /// One command of the control socket: "fault …", "status", "jobs", "step SECONDS". The answer is one JSON document.
  Result<std::string> command(const Words& words);

  const twin::Machine& machine() const { return machine_; }
  twin::Machine& machine() { return machine_; }

 private:
  struct Board {
    CallFaults faults;
    bool lies = false;  ///< setters say success and do nothing
    bool mig = false;
    bool persistence = true;
  };
  struct FaultCommand;
  static std::vector<FaultCommand> call_faults();
  static std::vector<FaultCommand> board_faults();
  static std::vector<FaultCommand> node_faults();
  static const std::vector<FaultCommand>& fault_commands();

  std::uint32_t execute(const fg_slot& slot);
  std::uint32_t execute_set_limit(twin::Gpu& gpu, std::uint32_t milliwatts);
  fg_gpu record_of(std::size_t index) const;
  Result<std::string> fault(const Words& words);
  Result<std::vector<std::size_t>> select(const std::string& which) const;
  Result<std::string> step(const Words& words);
  std::string status() const;
  std::string jobs() const;
  void reload_driver();

  twin::Machine machine_;
  BoardKind kind_;
  PageOwner& page_;
  WallTime start_;
  std::vector<Board> boards_;
  std::uint64_t setters_ = 0;
};

}  // namespace flyball::fakegpu
