#pragma once
// What stands around the GPUs of a node and how its two meters see it: one plant, two sensor models. The nodes of a
// machine are its GPUs in groups of `node.gpus`.

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/units.h"
#include "series/series.h"
#include "twin/machine.h"

namespace flyball::twin {

/// Both meters at one stamp, in whole watts.
struct NodeSample {
  MonoTime at;
  Watts ac, dc;
};

class NodeMeters {
 public:
  explicit NodeMeters(const Machine& machine);

  /// To be called after each tick of the machine (`Machine::advance` by one tick), or samples are missed.
  void observe(const Machine& machine);
  std::size_t size() const { return nodes_.size(); }
  const std::vector<NodeSample>& samples(std::size_t node) const { return nodes_[node].samples; }
  /// True power of a node over the last tick, without ripple and meters.
  Watts power(std::size_t node) const { return Watts(nodes_[node].power); }

 private:
  struct Node {
    Random random;
    double other = 0, wander = 0;    // W
    double next = 0;                 // s: of the logger's next round, without jitter
    double stamp = 0, ac_due = 0;    // s: when the next sample is logged, when its AC value was true
    double power = 0, filtered = 0;  // W
    std::optional<Watts> ac;         // of the sample that is to be logged
    std::vector<NodeSample> samples;
  };
  void plan(Node& node);
  double ripple(const Machine& machine, double at, double busy) const;

  NodeParameters parameters_;
  double keep_;         // of the AC meter's state, per tick
  double wander_keep_;  // of the wander, per tick
  Random common_random_;
  double common_wander_ = 0;  // W
  std::vector<Node> nodes_;
};

/// A recording as the benchmark's own: series "RUN/node-N" of both scopes, and events run_start, eval_start, eval_stop,
/// run_stop. Advances the machine.
series::Recording record_nodes(Machine& machine, Seconds duration, WallTime start, const std::string& run);

}  // namespace flyball::twin
