#include "facility/switches.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"

namespace flyball::facility {
namespace {

using Column = std::vector<double>;

constexpr std::size_t kMostSwitches = 4;
constexpr int kFewestTurns = 12;
constexpr double kLeastGain = 0.03, kLevels = 12;

double dot(const Column& a, const Column& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Takes out of `column` what the basis explains, and gives it the length 1; false where nothing is left.
bool orthogonal(const std::vector<Column>& basis, Column& column) {
  const double before = dot(column, column);
  for (const Column& b : basis) {
    const double along = dot(b, column);
    for (std::size_t i = 0; i < column.size(); ++i) column[i] -= along * b[i];
  }
  const double left = dot(column, column);
  if (!(left > 1e-8 * before)) return false;
  for (double& v : column) v /= std::sqrt(left);
  return true;
}

/// Its state as a column, and that times the felt heat; empty where it hardly ever turns.
std::vector<Column> columns_of(const Switch& candidate, std::span<const SwitchMoment> moments) {
  std::vector<Column> made(2, Column(moments.size()));
  bool on = false;
  int turns = 0;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const SwitchMoment& m = moments[i];
    const bool next = candidate.next(on, candidate.by == Switch::By::felt ? m.felt : m.air);
    turns += i > 0 && next != on ? 1 : 0;
    on = next;
    made[0][i] = on ? 1 : 0;
    made[1][i] = on ? m.felt : 0;
  }
  return turns < kFewestTurns ? std::vector<Column>() : made;
}

std::vector<Switch> candidates(std::span<const SwitchMoment> moments) {
  std::vector<Switch> made;
  for (const Switch::By by : {Switch::By::felt, Switch::By::air}) {
    std::vector<double> values;
    for (const SwitchMoment& m : moments) values.push_back(by == Switch::By::felt ? m.felt : m.air);
    constexpr double kTail = 0.01;
    const double low = quantile(values, kTail), high = quantile(values, 1 - kTail);
    if (!(high > low)) continue;
    const int most_wide = by == Switch::By::felt ? static_cast<int>(kLevels) : 4;
    const double levels = by == Switch::By::felt ? kLevels : 2 * kLevels;
    for (int up = 1; up < static_cast<int>(levels); ++up)
      for (int wide = 0; wide <= std::min(up, most_wide); ++wide)
        made.push_back({by, low + (high - low) * up / levels, low + (high - low) * (up - wide) / levels});
  }
  return made;
}

}  // namespace

std::vector<Switch> find_switches(std::span<const SwitchMoment> moments) {
  std::vector<Switch> made;
  if (moments.empty()) return made;
  std::vector<Column> basis;
  for (std::size_t j = 0; j < moments.front().x.size(); ++j) {
    Column column;
    for (const SwitchMoment& m : moments) column.push_back(m.x[j]);
    if (orthogonal(basis, column)) basis.push_back(std::move(column));
  }
  Column left;
  for (const SwitchMoment& m : moments) left.push_back(m.target);
  for (const Column& b : basis) {
    const double along = dot(b, left);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] -= along * b[i];
  }
  std::vector<std::pair<Switch, std::vector<Column>>> pool;
  for (const Switch& candidate : candidates(moments))
    if (auto columns = columns_of(candidate, moments); !columns.empty())
      pool.emplace_back(candidate, std::move(columns));
  // Each is kept orthogonal to the basis, so that a round costs what the new columns do.
  std::vector<Column> fresh = basis;
  while (made.size() < kMostSwitches && !pool.empty()) {
    double most = 0;
    std::size_t best = 0;
    for (std::size_t c = 0; c < pool.size(); ++c) {
      auto& columns = pool[c].second;
      double gain = 0;
      std::vector<Column> own;
      for (Column& column : columns) {
        if (!orthogonal(fresh, column)) continue;
        Column second = column;
        if (!orthogonal(own, second)) continue;
        const double along = dot(second, left);
        gain += along * along;
        own.push_back(std::move(second));
      }
      if (gain > most) most = gain, best = c;
    }
    if (most < kLeastGain * dot(left, left)) break;
    made.push_back(pool[best].first);
    fresh.clear();
    for (Column& column : pool[best].second) {
      if (!orthogonal(fresh, column)) continue;
      const double along = dot(column, left);
      for (std::size_t i = 0; i < left.size(); ++i) left[i] -= along * column[i];
      fresh.push_back(column);
    }
    pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return made;
}

}  // namespace flyball::facility
