#include "meter/relations.h"

#include <fmt/format.h>

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
    const double volts = value_of(group_, voltage);
    const double amperes = value_of(group_, current);
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

struct Correction {
  const Observed* point;
  int power_of_ten;
};

/// Every change of one point by a power of ten after which all relations hold and the voltage is one that exists.
std::vector<Correction> corrections(const std::string& name, const Group& group) {
  std::vector<Correction> found;
  for (const auto& [quantity, point] : group) {
    if (quantity == Quantity::power_factor) continue;
    if (quantity == Quantity::voltage && is_supply(std::fabs(point->mean))) continue;
    for (int k = -3; k <= 3; ++k) {
      if (k == 0) continue;
      Observed changed = *point;
      changed.mean *= std::pow(10.0, k);
      if (changed.per_second) *changed.per_second *= std::pow(10.0, k);
      Group other = group;
      other[quantity] = &changed;
      const double volts = value_of(other, Quantity::voltage);
      if (volts != 0 && !is_supply(std::fabs(volts))) continue;
      if (all_hold(Checker(name, other).all())) found.push_back({point, k});
    }
  }
  return found;
}

std::string shown(const Correction& one) {
  return fmt::format("{} x {:g}", one.point->name, std::pow(10.0, one.power_of_ten));
}

ScaleJudgement judge(const std::string& name, const Group& group) {
  ScaleJudgement made;
  made.group = name;
  const auto relations = Checker(name, group).all();
  const double apparent = value_of(group, Quantity::voltage) * value_of(group, Quantity::current);
  const double factor = std::fabs(value_of(group, Quantity::power_factor));
  const double watts = std::fabs(value_of(group, Quantity::power));
  if (relations.empty()) {
    made.text = "nothing to compare: no two of V, A, PF, VA, W and a counter, or all are 0";
    return made;
  }
  if (factor > 0 && factor < kClearFactor && apparent > 0 && watts > 0 &&
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
  const auto found = corrections(name, group);
  if (found.size() == 1) {
    made.verdict = ScaleVerdict::corrected;
    made.point = found.front().point->name;
    made.factor = std::pow(10.0, found.front().power_of_ten);
    made.text += ": " + shown(found.front());
    return made;
  }
  made.verdict = found.empty() ? ScaleVerdict::disagrees : ScaleVerdict::ambiguous;
  made.text += found.empty() ? ": no power of ten mends it" : ": could be";
  for (std::size_t i = 0; i < found.size(); ++i) made.text += (i == 0 ? " " : " or ") + shown(found[i]);
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
