#include "twin/node_statistics.h"

#include "series/fleet_sum.h"
#include "series/samples.h"
#include "series/step_period.h"

namespace flyball::twin {
namespace {

constexpr Seconds kMargin(4);     // meters lag and stamps are rounded
constexpr Seconds kRunStart(12);  // the first step
constexpr Seconds kWidths[] = {Seconds(2), Seconds(5), Seconds(10), Seconds(30)};

std::vector<series::Interval> not_training(std::span<const series::Event> events) {
  std::vector<series::Interval> excluded;
  for (const series::Event& event : events) {
    if (event.kind == "run_start") excluded.push_back({event.at - Seconds(60), event.at + kRunStart});
    if (event.kind == "eval_start") excluded.push_back({event.at - kMargin, event.at + kMargin});
    if (event.kind == "eval_stop" && !excluded.empty()) excluded.back().stop = event.at + kMargin;
    if (event.kind == "run_stop") excluded.push_back({event.at, event.at + Seconds(3600)});
  }
  return excluded;
}

}  // namespace

NodeStatistics node_statistics(std::span<const std::span<const series::Point>> nodes,
                               std::span<const series::Event> events) {
  NodeStatistics made;
  made.nodes = nodes.size();
  const auto excluded = not_training(events);
  made.blocks = series::block_statistics(nodes, kWidths, excluded);
  made.correlation = series::pairwise_correlation(nodes, kWidths[0], excluded).value_or(0);
  const auto sum = series::fleet_sum(nodes);
  const auto period = series::find_step_period(series::usable_samples(sum.sum.points));
  if (period.found) made.step_period = period.period;
  return made;
}

NodeStatistics node_statistics(const series::Recording& recording, Scope scope) {
  std::vector<std::span<const series::Point>> nodes;
  for (const series::Series& each : recording.series) {
    if (each.key.scope == scope) nodes.emplace_back(each.points);
  }
  return node_statistics(nodes, recording.events);
}

}  // namespace flyball::twin
