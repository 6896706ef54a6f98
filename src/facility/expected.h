#pragma once
// What one signal should be, given others: learned on a time in which nothing was wrong and then kept, for what goes
// on learning ends up expecting the fault. Only where conditions are new is it still taught.

#include <span>
#include <vector>

#include "base/clock.h"
#include "facility/recursive.h"

namespace flyball::facility {

/// One block of the reference time.
struct Lesson {
  WallTime at;
  std::vector<double> x;
  double y = 0;
};

struct Surprise {
  double expected = 0;
  double difference = 0;  ///< measured less expected
  /// In standard deviations of a mean over long runs: differences are worth as much as independent ones.
  double z = 0;
  double sd = 1;       ///< one of them
  double doubt = 0;    ///< of the expectation, in that
  bool known = false;  ///< the conditions were seen before; else the block teaches and is not judged
};

/// A linear model with steady coefficients, priors in the size of things. Noise is what is left where parts of the
/// reference are foretold from the other parts, so that a model that does not hold over weeks is not believed.
class Expected {
 public:
  /// `prior_sd`: of each coefficient; `rare`: the scatter is that of all blocks, not of the middle ones. Lessons come
  /// in order of time; fewer than 48 teach nothing.
  static Expected learn(std::span<const Lesson> lessons, std::span<const double> prior_sd, double least_sd,
                        bool rare = false);

  /// Nothing is expected.
  static Expected none() { return Expected({}); }

  bool learned() const { return learned_; }
  /// How the block compares. Teaches where conditions are new, unless the block is absurd or under `suspicion`: what is
  /// learned while something is wrong would hide it.
  Surprise take(WallTime at, std::span<const double> x, double y, bool suspicion = false);
  /// Of one block.
  double sd() const { return sd_; }
  /// How many blocks in a row say as much as one.
  double run_length() const { return run_length_; }

 private:
  explicit Expected(std::span<const double> prior_sd);
  double effective_sd() const;

  std::vector<Term> terms_;
  RecursiveRegression model_;
  double sd_ = 1, run_length_ = 1;
  bool learned_ = false;
};

/// Sum of autocorrelations with Bartlett's weights (Newey and West, 1987), at least 1: by it the variance of a mean of
/// many is larger than that of as many independent values.
double variance_inflation(std::span<const double> values, double centre);

}  // namespace flyball::facility
