#include "series/samples.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"

namespace flyball::series {
namespace {

// Indices of a longest strictly rising subsequence of the stamps (patience sorting), so that one stamp far in the
// future costs one point and not all that follow. Worked from the end: of equally long choices the points that came
// first in the file stay.
std::vector<std::size_t> longest_rising(const std::vector<const Point*>& points) {
  std::vector<std::size_t> tail;  // tail[k]: the latest start of a rising run of length k + 1
  std::vector<std::size_t> next(points.size(), points.size());
  for (std::size_t i = points.size(); i-- > 0;) {
    const auto place = std::lower_bound(tail.begin(), tail.end(), i,
                                        [&](std::size_t a, std::size_t b) { return points[a]->at > points[b]->at; });
    if (place != tail.begin()) next[i] = *(place - 1);
    if (place == tail.end())
      tail.push_back(i);
    else
      *place = i;
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = tail.empty() ? points.size() : tail.back(); i < points.size(); i = next[i]) kept.push_back(i);
  return kept;
}

void keep_in_order(std::vector<const Point*>& good, Skipped& skipped) {
  const auto kept = longest_rising(good);
  std::vector<const Point*> ordered;
  ordered.reserve(kept.size());
  for (std::size_t i : kept) ordered.push_back(good[i]);
  for (std::size_t i = 0, next = 0; i < good.size(); ++i) {
    if (next < kept.size() && kept[next] == i) {
      ++next;
      continue;
    }
    const bool same = std::binary_search(ordered.begin(), ordered.end(), good[i],
                                         [](const Point* a, const Point* b) { return a->at < b->at; });
    ++(same ? skipped.duplicate : skipped.disordered);
  }
  good = std::move(ordered);
}

}  // namespace

Samples usable_samples(std::span<const Point> points) {
  Samples out;
  std::vector<const Point*> good;
  good.reserve(points.size());
  bool rising = true;
  for (const Point& p : points) {
    if (p.status != Status::ok || !std::isfinite(p.value)) {
      ++out.skipped.not_ok;
      continue;
    }
    if (!good.empty() && p.at <= good.back()->at) rising = false;
    good.push_back(&p);
  }
  if (!rising) keep_in_order(good, out.skipped);
  if (good.empty()) return out;
  out.origin = good.front()->at;
  out.t_s.reserve(good.size());
  out.value.reserve(good.size());
  for (const Point* p : good) {
    out.t_s.push_back((p->at - out.origin).value());
    out.value.push_back(p->value);
  }
  if (good.size() < 2) return out;
  std::vector<double> distance(good.size() - 1);
  for (std::size_t i = 0; i + 1 < good.size(); ++i) distance[i] = out.t_s[i + 1] - out.t_s[i];
  const auto middle = distance.begin() + static_cast<std::ptrdiff_t>(distance.size() / 2);
  std::nth_element(distance.begin(), middle, distance.end());
  out.period = Seconds(*middle);
  return out;
}

std::span<const Point> points_within(std::span<const Point> points, Interval interval) {
  const auto before = [](const Point& p, WallTime t) { return p.at < t; };
  const auto first = std::lower_bound(points.begin(), points.end(), interval.start, before);
  const auto last = std::lower_bound(first, points.end(), interval.stop, before);
  return {first, last};
}

}  // namespace flyball::series
