#include "series/spool.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "series/clean.h"
#include "series/phases.h"

namespace flyball::series {
namespace {

/// So far `clean` looks to each side.
constexpr std::size_t kContext = 10;
constexpr std::size_t kChunkPoints = 256;
/// With very many series their waiting points would be much: smaller chunks then.
constexpr std::size_t kManySeries = 2'000;
constexpr std::size_t kSmallChunkPoints = 32;

struct Stored {
  std::int64_t at_ns;
  double value;
};

bool used(const Event& event) {
  return event.kind == "run_start" || event.kind == "run_stop" || event.kind == "tokens" ||
         event.kind == "train_samples" || phase_edge(event).has_value();
}

}  // namespace

std::uint32_t Spool::begin_series(const SeriesKey& key) {
  parts_.push_back({.key = key});
  stores_.emplace_back();
  return static_cast<std::uint32_t>(parts_.size() - 1 - file_begin_);
}

void Spool::event(const Event& event) {
  if (!used(event)) return;
  if (events_.size() < kMostEvents) {
    events_.push_back(event);
  } else {
    ++events_left_out_;
  }
}

void Spool::point(std::uint32_t series, const Point& point) {
  const std::size_t part = file_begin_ + series;
  Store& store = stores_[part];
  store.waiting.push_back(point);
  const std::size_t chunk = parts_.size() > kManySeries ? kSmallChunkPoints : kChunkPoints;
  if (store.waiting.size() >= store.context + chunk + kContext) settle(part, false);
}

/// Cleans what waits, in the light of its neighbours, and puts aside all but the last of it.
void Spool::settle(std::size_t index, bool end) {
  Part& part = parts_[index];
  Store& store = stores_[index];
  (void)clean(store.waiting, part.key);
  const std::size_t keep = end ? 0 : std::min(kContext, store.waiting.size() - store.context);
  const std::size_t stop = store.waiting.size() - keep;
  std::vector<Stored> out;
  for (std::size_t i = store.context; i < stop; ++i) {
    const Point& p = store.waiting[i];
    if (p.status != Status::ok || !std::isfinite(p.value)) {
      ++part.not_ok;
      if (p.status == Status::garbage) ++part.garbage;
      continue;
    }
    if (part.points++ == 0) {
      part.first = p.at;
    } else {
      part.distance.add((p.at - part.last).value(), random_);
    }
    part.last = p.at;
    out.push_back({p.at.nanoseconds(), p.value});
  }
  if (!out.empty() && !failure_) {
    const auto at = scratch_.append({reinterpret_cast<const char*>(out.data()), out.size() * sizeof(Stored)});
    if (!at) {
      failure_ = at.error();
    } else {
      store.chunks.push_back({out.front().at_ns, out.back().at_ns, *at, static_cast<std::uint32_t>(out.size())});
    }
  }
  const std::size_t context_from = stop > kContext ? stop - kContext : 0;
  store.waiting.erase(store.waiting.begin(), store.waiting.begin() + static_cast<std::ptrdiff_t>(context_from));
  store.context = stop - context_from;
  if (end) store.waiting = {};
}

Result<> Spool::end_file() {
  for (std::size_t i = file_begin_; i < parts_.size(); ++i) settle(i, true);
  file_begin_ = parts_.size();
  if (failure_) return fail(*failure_);
  return {};
}

Result<> Spool::read_chunk(const Chunk& chunk, std::vector<Point>& into) const {
  std::vector<Stored> stored(chunk.count);
  FLYBALL_TRY(scratch_.read(chunk.at, reinterpret_cast<char*>(stored.data()), stored.size() * sizeof(Stored)));
  for (const Stored& s : stored) into.push_back({WallTime(s.at_ns), s.value, Status::ok});
  return {};
}

Result<std::vector<Point>> Spool::load(std::size_t part, Interval interval, std::size_t margin) const {
  const auto& chunks = stores_[part].chunks;
  const auto ends_before = [](const Chunk& c, WallTime t) { return c.last_ns < t.nanoseconds(); };
  const auto begins_after = [](WallTime t, const Chunk& c) { return t.nanoseconds() < c.first_ns; };
  auto first = std::lower_bound(chunks.begin(), chunks.end(), interval.start, ends_before);
  auto last = std::upper_bound(first, chunks.end(), interval.stop, begins_after);
  // Chunks can be as short as one point.
  for (std::size_t more = 0; first != chunks.begin() && more < margin; more += first->count) --first;
  for (std::size_t more = 0; last != chunks.end() && more < margin; more += (last - 1)->count) ++last;
  std::vector<Point> all;
  for (auto chunk = first; chunk != last; ++chunk) FLYBALL_TRY(read_chunk(*chunk, all));
  const auto before = [](const Point& p, WallTime t) { return p.at < t; };
  const auto after = [](WallTime t, const Point& p) { return t < p.at; };
  const auto from = std::lower_bound(all.begin(), all.end(), interval.start, before) - all.begin();
  const auto to = std::upper_bound(all.begin(), all.end(), interval.stop, after) - all.begin();
  const auto size = static_cast<std::ptrdiff_t>(all.size());
  const auto wide = static_cast<std::ptrdiff_t>(margin);
  all.erase(all.begin() + std::min(size, to + wide), all.end());
  all.erase(all.begin(), all.begin() + std::max<std::ptrdiff_t>(0, from - wide));
  return all;
}

}  // namespace flyball::series
