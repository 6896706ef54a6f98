#pragma once
// Rules of the field that look at utilisation and nothing else. None promises anything about throughput, and none sees
// a rank that waits in a collective, for the driver counts waiting as busy.

#include <string>
#include <vector>

#include "policy/job.h"
#include "policy/policy.h"

namespace flyball::policy {

/// What was seen of each board while the job trained. An interval of any other phase is not taken in, and medians over
/// two minutes pass over a checkpoint that the job does not tell.
class UtilisationRule : public Policy {
 public:
  void reset(std::uint64_t seed) override;
  Proposal decide(const Observation& observation) override;

 protected:
  struct Board {
    FoundLimits::Board is;
    Milliwatts limit;                 ///< wished now
    std::vector<double> utilisation;  ///< fractions, since the last verdict
  };
  /// `utilisation` is the median of a whole window of `board`.
  virtual Milliwatts next(const Board& board, double utilisation) const = 0;

 private:
  std::vector<Board> boards_;
};

/// One grid step down after each window in which the board was used less than `low`; at or above `high` back up, one
/// step or at once to the limit found; in between as it is. `low` = `high` is the threshold rule.
class UtilisationSteps final : public UtilisationRule {
 public:
  struct Rule {
    std::string name;
    double low;
    double high;
    bool restores_at_once;
  };
  static Rule threshold();
  static Rule hysteresis();
  explicit UtilisationSteps(Rule rule) : rule_(std::move(rule)) {}
  std::string name() const override { return rule_.name; }

 protected:
  Milliwatts next(const Board& board, double utilisation) const override;

 private:
  Rule rule_;
};

/// The limit found times utilisation, the whole of it from 95 % on.
class UtilisationProportional final : public UtilisationRule {
 public:
  std::string name() const override { return "utilisation"; }

 protected:
  Milliwatts next(const Board& board, double utilisation) const override;
};

}  // namespace flyball::policy
