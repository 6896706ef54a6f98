#pragma once
// What points of one phase or outlet must satisfy together: V × A × PF = W, V × A = VA, and a counter that rises by
// the power. Pure. A wrong scale, unit or word order shows here and nowhere else.

#include <optional>
#include <string>
#include <vector>

#include "meter/profile.h"

namespace flyball::meter {

/// What a point said over the rounds, in its base unit.
struct Observed {
  std::string name;
  std::string group;
  Quantity quantity = Quantity::power;
  double mean = 0;
  std::optional<double> per_second;  ///< of counters: rise over the rounds
};

struct Relation {
  std::string group;
  std::string text;  ///< "V × A × PF against W"
  double ratio = 0;  ///< left over right; 1 is right
  bool holds = false;
  std::vector<std::string> points;
  bool is_bound = false;       ///< nobody states the power factor, so that only a range is known
  bool factor_of_ten() const;  ///< off by ten, a hundred or a thousand, and otherwise right
};

/// All that can be checked. Zero and missing values join in none.
std::vector<Relation> relations_of(const std::vector<Observed>& points);

enum class ScaleVerdict {
  nothing_to_compare,
  agrees,
  corrected,    ///< exactly one point times a power of ten makes all agree
  ambiguous,    ///< several would
  disagrees,    ///< none would
  is_apparent,  ///< what is called power is V × A
};

struct ScaleJudgement {
  std::string group;
  ScaleVerdict verdict = ScaleVerdict::nothing_to_compare;
  std::string text;
  std::string point;  ///< to be corrected
  double factor = 1;  ///< by this
};
/// One a group.
std::vector<ScaleJudgement> judge_scales(const std::vector<Observed>& points);

/// Whether a meter in operation would say this: narrower than what is possible, so that a swapped word shows.
bool is_usual(Quantity quantity, double value);

}  // namespace flyball::meter
