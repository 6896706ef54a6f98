#pragma once
// The classical best: a belief about the job's own curve, a plan for the rest of the run that keeps the bound on loss
// with a margin for what is not known, and a look at the limits as found whenever that is worth more than it costs.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "policy/belief.h"
#include "policy/ladder.h"
#include "policy/plan.h"
#include "policy/policy.h"
#include "policy/ranks.h"

namespace flyball::policy {

/// Log speed and log power of the job against one common limit are Gaussian beliefs that begin as the family of curves
/// (curve/family.h) and drift slowly. Every interval tells about the limit that held in it, whoever chose it. Each
/// decision plans the time left: the most energy per token saved while the loss of the whole run, past included, stays
/// within the bound by some standard deviations; what was lost too little so far may be lost later. An interval at
/// another limit, or at the limit found, is bought when what it teaches is worth more than it costs.
class Model final : public Policy {
 public:
  static Result<std::unique_ptr<Policy>> make(const Objective& objective);
  /// The same with locked clocks where they may be locked, and with ranks that wait slowed until they hardly do.
  static Result<std::unique_ptr<Policy>> make_slack(const Objective& objective);
  std::string name() const override { return slack_ ? "slack" : "model"; }
  void reset(std::uint64_t seed) override;
  Result<> set_objective(const Objective& objective) override;
  Proposal decide(const Observation& observation) override;
  void observe_baseline(const Observation& observation) override;

 private:
  /// The setting that held from a point of time on, as weights of the grid.
  struct Held {
    MonoTime since;
    double setting;  ///< of the ladder
    std::vector<double> weights;
  };

  Model(const Objective& objective, bool slack) : objective_(objective), slack_(slack) {}
  bool begin(const Observation& observation);
  void build_beliefs(Watts unlimited);
  void learn(const Observation& observation);
  void check_noise(double squared, double y);
  void learn_rate(const Observation& observation);
  bool settling() const;
  double linearize(std::vector<double>& weights) const;
  std::vector<double> weights_over(MonoTime from, MonoTime to) const;
  void set_levels(double elapsed_fraction);
  double price_of_loss(const Plan& plan, const Spent& gone, double left) const;
  std::optional<std::size_t> worth_trying(const Plan& plan, double left);
  Proposal try_out(std::size_t level);
  std::size_t choose(const Plan& plan);
  Proposal propose(std::size_t level, std::string reason) const;

  Objective objective_;
  bool slack_;
  Random random_{1};
  std::optional<Ladder> ladder_;
  Ranks ranks_;
  std::optional<Belief> rate_, power_;
  double rate_noise_ = 0, power_noise_ = 0;  ///< variances, in logs
  double begun_noise_ = 0;                   ///< with which `rate_` was begun
  std::vector<double> differences_;          ///< of the speed, squares of neighbouring intervals' halved
  std::vector<double> places_;               ///< of the ladder's settings, as the families take them
  double rate_noise_weight_ = 0, power_noise_weight_ = 0;
  std::optional<double> last_rate_, last_power_;
  int odd_in_a_row_ = 0;
  std::deque<Held> held_;
  std::vector<double> counts_;  ///< intervals spent at each grid point
  std::vector<double> tried_;   ///< of those, in order to learn
  double intervals_ = 0, baseline_ = 0;
  std::vector<Level> levels_;
  double mixing_ = 0;  ///< how far the second limit of a mix is behind its share
  int hold_ = 0;       ///< intervals that the last limit still stays
  std::size_t last_level_ = 0;
  bool in_second_ = false;  ///< it is the second one of a mix
  int until_look_ = 0;
  std::optional<std::size_t> once_more_;  ///< a trial whose first interval the way there took
  std::vector<Belief::Value> rate_value_, power_value_;
};

}  // namespace flyball::policy
