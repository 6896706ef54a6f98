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

/// Which way the power runs.
struct DirectionJudgement {
  std::string group;
  bool forward = true;
  std::string text;
  std::string point;  ///< that reads the wrong way
};
/// One a group that has power, current or a counter. A current transformer that is turned round, or has its wires
/// swapped, reads negative power while V × A is positive; beside two right ones it takes off what they add.
std::vector<DirectionJudgement> judge_directions(const std::vector<Observed>& points);

/// A number that can be no power factor as one in percent or thousandths: 100, 1000 or, where it is neither, 0.
double parts_of_factor(double said);

/// Whether a meter in operation would say this: narrower than what is possible, so that a swapped word shows.
bool is_usual(Quantity quantity, double value);

}  // namespace flyball::meter
