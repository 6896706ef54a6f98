#include "meter/relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace flyball::meter {
namespace {

/// Rounding of PF to two digits, and values of one round that were taken one after another.
constexpr double kTolerance = 0.10;
/// A counter over a few seconds advances in whole steps of the meter.
constexpr double kCounterTolerance = 0.5;
/// A power factor that nobody states: from rectifiers without correction up to rounding.
constexpr double kLowestFactor = 0.3;
constexpr double kHighestFactor = 1.05;
/// No load has less; an idle transformer has 0.1 to 0.2.
constexpr double kLeastLoadFactor = 0.05;
/// Of supplies of computers under load, as 80 PLUS asks for.
constexpr double kSupplyFactor = 0.9;
/// Of a current that is not of the voltage's phase: cos(120 degrees) and what the load's own angle adds.
constexpr double kOtherPhaseFactor = 0.7;
/// Below it V × A × PF and V × A are told apart in spite of the meter's class (2 %).
constexpr double kClearFactor = 0.95;

using Group = std::map<Quantity, const Observed*>;

bool near(double ratio, double tolerance) { return ratio > 0 && std::fabs(std::log(ratio)) <= std::log1p(tolerance); }

double value_of(const Group& group, Quantity quantity) {
  const auto found = group.find(quantity);
  return found == group.end() ? 0 : found->second->mean;
}

class Checker {
 public:
  Checker(const std::string& name, const Group& group) : name_(name), group_(group) {}

  std::vector<Relation> all() {
    using enum Quantity;
    const double volts = std::fabs(value_of(group_, voltage));  // of telecom plants -48 V
    const double amperes = std::fabs(value_of(group_, current));
    const double watts = std::fabs(value_of(group_, power));
    const double apparent = value_of(group_, apparent_power);
    const double factor = std::fabs(value_of(group_, power_factor));
    compare("V x A against VA", volts * amperes, apparent, {voltage, current, apparent_power});
    if (factor > 0) {
      compare("V x A x PF against W", volts * amperes * factor, watts, {voltage, current, power_factor, power});
      compare("VA x PF against W", apparent * factor, watts, {apparent_power, power_factor, power});
    } else {
      bound("W against V x A", watts, volts * amperes, {power, voltage, current});
      bound("W against VA", watts, apparent, {power, apparent_power});
    }
    if (const auto counter = group_.find(energy); counter != group_.end() && counter->second->per_second) {
      compare("rise of the counter against W", *counter->second->per_second, watts, {energy, power}, kCounterTolerance);
    }
    return std::move(made_);
  }

 private:
  void add(const char* text, double ratio, bool holds, std::initializer_list<Quantity> members) {
    Relation relation{name_, text, ratio, holds, {}, false};
    for (const Quantity member : members) {
      if (const auto found = group_.find(member); found != group_.end()) relation.points.push_back(found->second->name);
    }
    made_.push_back(std::move(relation));
  }
  void compare(const char* text, double left, double right, std::initializer_list<Quantity> members,
               double tolerance = kTolerance) {
    if (!(left > 0) || !(right > 0)) return;
    add(text, left / right, near(left / right, tolerance), members);
  }
  void bound(const char* text, double left, double right, std::initializer_list<Quantity> members) {
    if (!(left > 0) || !(right > 0)) return;
    const double ratio = left / right;
    add(text, ratio, ratio >= kLowestFactor && ratio <= kHighestFactor, members);
    made_.back().is_bound = true;
  }

  std::string name_;
  const Group& group_;
  std::vector<Relation> made_;
};

std::map<std::string, Group> groups_of(const std::vector<Observed>& points) {
  std::map<std::string, Group> groups;
  for (const Observed& point : points) groups[point.group].emplace(point.quantity, &point);
  return groups;
}

bool all_hold(const std::vector<Relation>& relations) {
  for (const Relation& relation : relations) {
    if (!relation.holds) return false;
  }
  return true;
}

/// Nominal 12 and 48 to 54 V of racks, 100 to 127, 200 to 277, 346 to 480 and 600 to 690 V of mains, with 10 % around.
/// A voltage that exists is trusted: what disagrees with it is wrong.
bool is_supply(double volts) {
  struct Band {
    double low, high;
  };
  static constexpr Band kBands[] = {{10.8, 13.2}, {43, 60}, {90, 140}, {180, 305}, {311, 528}, {540, 760}};
  for (const Band& band : kBands) {
    if (volts >= band.low && volts <= band.high) return true;
  }
  return false;
}

/// As a voltage that exists is trusted, so is a power factor that does.
bool is_factor(double factor) { return factor >= kLeastLoadFactor && factor <= kHighestFactor; }

/// All relations hold, and voltage and power factor are ones that exist.
bool all_right(const std::string& name, const Group& group) {
  const double volts = std::fabs(value_of(group, Quantity::voltage));
  const double factor = std::fabs(value_of(group, Quantity::power_factor));
  if ((volts != 0 && !is_supply(volts)) || (factor != 0 && !is_factor(factor))) return false;
  return all_hold(Checker(name, group).all());
}

struct Correction {
  const Observed* point;
  int power_of_ten;
};

/// Every change of one point by a power of ten after which all is right.
std::vector<Correction> corrections(const std::string& name, const Group& group) {
  std::vector<Correction> found;
  for (const auto& [quantity, point] : group) {
    const double size = std::fabs(point->mean);
    if (quantity == Quantity::power_factor && is_factor(size)) continue;
    if (quantity == Quantity::voltage && is_supply(size)) continue;
    for (int k = -3; k <= 3; ++k) {
      if (k == 0) continue;
      Observed changed = *point;
      changed.mean *= std::pow(10.0, k);
      if (changed.per_second) *changed.per_second *= std::pow(10.0, k);
      Group other = group;
      other[quantity] = &changed;
      if (all_right(name, other)) found.push_back({point, k});
    }
  }
  return found;
}

std::string shown(const Correction& one) {
  return fmt::format("{} x {:g}", one.point->name, std::pow(10.0, one.power_of_ten));
}

struct Wiring {
  double volts_factor;  ///< V × A is right after this
  const char* text;
};
/// How three phases are mixed up within a group. No scale mends them: the group does not measure one thing.
constexpr Wiring kWirings[] = {
    {1.7320508,
     "V x A x sqrt(3) fits: V is between two phases and W of all three; group W of one phase with its own V"},
    {0.57735027, "V x A / sqrt(3) fits: V is between two phases and W of one; take V to neutral"},
    {3, "V x A x 3 fits: W is of three phases, V and A of one; group W of one phase with them"},
    {1.0 / 3,
     "V x A / 3 fits: A is of three phases and W of one, or one of three current transformers is turned round and "
     "takes off what the others add; turn it"},
};

/// Where V × A misses by exactly such a factor, and where nobody states a power factor, by one with that of a usual
/// supply.
std::vector<std::string> wirings(const std::string& name, const Group& group) {
  std::vector<std::string> found;
  const auto volts = group.find(Quantity::voltage);
  if (volts == group.end() || group.count(Quantity::current) == 0) return found;
  for (const Wiring& one : kWirings) {
    Observed changed = *volts->second;
    changed.mean *= one.volts_factor;
    Group other = group;
    other[Quantity::voltage] = &changed;
    const auto relations = Checker(name, other).all();
    const bool unusual = std::any_of(relations.begin(), relations.end(),
                                     [](const Relation& r) { return r.is_bound && r.ratio < kSupplyFactor; });
    if (!unusual && all_hold(relations)) found.emplace_back(one.text);
  }
  return found;
}

/// A group of which something does not hold: what could be wrong, and mended where it can be one thing only.
void explain(const std::string& name, const Group& group, ScaleJudgement& made) {
  const auto found = corrections(name, group);
  const auto mixed_up = wirings(name, group);
  if (found.size() == 1 && mixed_up.empty()) {
    made.verdict = ScaleVerdict::corrected;
    made.point = found.front().point->name;
    made.factor = std::pow(10.0, found.front().power_of_ten);
    made.text += ": " + shown(found.front());
    return;
  }
  made.verdict = found.empty() ? ScaleVerdict::disagrees : ScaleVerdict::ambiguous;
  std::string all;
  for (const Correction& one : found) all += (all.empty() ? "could be " : " or ") + shown(one);
  if (found.empty()) all = "no power of ten mends it";
  for (const std::string& one : mixed_up) all += "; " + one;
  made.text += ": " + all;
}

ScaleJudgement judge(const std::string& name, const Group& group) {
  ScaleJudgement made;
  made.group = name;
  const auto relations = Checker(name, group).all();
  const double apparent = std::fabs(value_of(group, Quantity::voltage) * value_of(group, Quantity::current));
  const double factor = std::fabs(value_of(group, Quantity::power_factor));
  const double watts = std::fabs(value_of(group, Quantity::power));
  if (relations.empty()) {
    made.text = "nothing to compare: no two of V, A, PF, VA, W and a counter, or all are 0";
    return made;
  }
  if (factor >= kLeastLoadFactor && factor < kClearFactor && apparent > 0 && watts > 0 &&
      std::fabs(std::log(watts / apparent)) < std::fabs(std::log(watts / (apparent * factor)))) {
    made.verdict = ScaleVerdict::is_apparent;
    made.point = group.at(Quantity::power)->name;
    if (near(watts / apparent, kTolerance)) {
      made.text = fmt::format("{} is V x A, though PF is {:.2f}: it is apparent power, in VA", made.point, factor);
      return made;
    }
  }
  made.point.clear();
  made.verdict = ScaleVerdict::agrees;
  for (const Relation& one : relations) {
    made.text += fmt::format("{}{} {:.3g}", made.text.empty() ? "" : ", ", one.text, one.ratio);
  }
  if (all_hold(relations)) return made;
  explain(name, group, made);
  return made;
}

DirectionJudgement judge_direction(const std::string& name, const Group& group) {
  using enum Quantity;
  DirectionJudgement made{name, true, "power, current and counter run from the supply to the load", {}};
  const auto backwards = [&](Quantity quantity, const std::string& text) {
    made.forward = false;
    made.point = group.at(quantity)->name;
    made.text = made.point + text;
    return made;
  };
  const double through = value_of(group, voltage) * value_of(group, current);
  const double watts = value_of(group, power);
  if (watts < 0 && std::fabs(watts) > kLeastLoadFactor * std::fabs(through)) {
    std::string text = fmt::format(" is {}", format(power, watts));
    if (through != 0) text += fmt::format(" while V x A is {}", format(apparent_power, std::fabs(through)));
    text += ": its current transformer is turned round or its wires are swapped";
    if (-watts < kOtherPhaseFactor * std::fabs(through)) text += ", or it sits on another phase than V";
    return backwards(power, text);
  }
  if (group.count(power) == 0 && through < 0) {
    const Quantity negative = value_of(group, current) < 0 ? current : voltage;
    return backwards(negative, fmt::format(" is {}: the shunt or current transformer is turned round",
                                           format(negative, value_of(group, negative))));
  }
  if (const auto counter = group.find(energy); counter != group.end() && counter->second->per_second.value_or(0) < 0) {
    return backwards(energy, " falls: the current transformer is turned round, or it counts what flows back");
  }
  return made;
}

}  // namespace

bool Relation::factor_of_ten() const {
  if (holds) return true;
  const double tens = std::log10(ratio);
  return std::fabs(tens) < 3.5 && (is_bound || std::fabs(tens - std::round(tens)) <= std::log10(1 + kTolerance));
}

std::vector<Relation> relations_of(const std::vector<Observed>& points) {
  std::vector<Relation> all;
  for (const auto& [name, group] : groups_of(points)) {
    for (Relation& one : Checker(name, group).all()) all.push_back(std::move(one));
  }
  return all;
}

std::vector<ScaleJudgement> judge_scales(const std::vector<Observed>& points) {
  std::vector<ScaleJudgement> all;
  for (const auto& [name, group] : groups_of(points)) all.push_back(judge(name, group));
  return all;
}

std::vector<DirectionJudgement> judge_directions(const std::vector<Observed>& points) {
  using enum Quantity;
  std::vector<DirectionJudgement> all;
  for (const auto& [name, group] : groups_of(points)) {
    if (group.count(power) + group.count(current) + group.count(energy) > 0)
      all.push_back(judge_direction(name, group));
  }
  return all;
}

double parts_of_factor(double said) {
  for (const double parts : {100.0, 1000.0}) {
    if (is_factor(std::fabs(said) / parts) && std::fabs(said) > kHighestFactor) return parts;
  }
  return 0;
}

bool is_usual(Quantity quantity, double value) {
  const double size = std::fabs(value);
  if (size == 0) return true;
  if (!std::isfinite(value) || !possible_range(quantity).holds(value)) return false;
  switch (quantity) {
    case Quantity::power:
    case Quantity::apparent_power:
      return size >= 1e-2 && size <= 1e8;
    case Quantity::energy:
      return value >= 1 && value <= 1e16;  // 100 MW for three years
    case Quantity::voltage:
      return (size >= 10 && size <= 60) || (size >= 90 && size <= 5e5);
    case Quantity::current:
      return size >= 1e-3 && size <= 2e4;
    case Quantity::power_factor:
      return size >= 0.01;
    case Quantity::frequency:
      return (size >= 45 && size <= 66) || (size >= 350 && size <= 450);
    default:
      return size >= 1e-6;
  }
}

}  // namespace flyball::meter
