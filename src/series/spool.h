#pragma once
// Telemetry of any size, put aside series by series as it is read, so that stretches of time of any of them can be
// looked at in bounded memory whatever the order of the file. Every value passes `clean` on the way in.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/scratch.h"
#include "series/samples.h"
#include "series/series.h"
#include "series/survey.h"

namespace flyball::series {

class Spool final : public Sink {
 public:
  /// One series of one file. Only points that are `ok` and finite are kept; the others are counted.
  struct Part {
    SeriesKey key;
    std::uint64_t points = 0;  ///< kept
    std::uint64_t not_ok = 0;  ///< of them the garbage found here: `garbage`
    std::uint64_t garbage = 0;
    WallTime first{}, last{};  ///< of kept ones
    Reservoir distance{kDistances};
    Seconds period() const { return Seconds(distance.quantile_of(0.5)); }
  };

  explicit Spool(std::size_t in_memory = Scratch::kInMemory) : scratch_(in_memory) {}

  std::uint32_t begin_series(const SeriesKey& key) override;
  void point(std::uint32_t series, const Point& point) override;
  void event(const Event& event) override;
  void quarantine(const Quarantined&) override {}
  /// Between two files: what comes next are parts of their own.
  Result<> end_file();

  const std::vector<Part>& parts() const { return parts_; }
  /// Those that analyses use: run_start and run_stop, tokens, ends of phases; at most kMostEvents.
  const std::vector<Event>& events() const { return events_; }
  std::uint64_t events_left_out() const { return events_left_out_; }
  static constexpr std::size_t kMostEvents = 200'000;

  /// The points of a part from the `margin`-th before `from` to the `margin`-th after `to`, in the file's order.
  Result<std::vector<Point>> load(std::size_t part, Interval interval, std::size_t margin) const;

 private:
  struct Chunk {
    std::int64_t first_ns, last_ns;
    std::uint64_t at;
    std::uint32_t count;
  };
  struct Store {
    std::vector<Chunk> chunks;
    std::vector<Point> waiting;  ///< behind `context` that are stored already
    std::size_t context = 0;
  };

  void settle(std::size_t part, bool end);
  Result<> read_chunk(const Chunk& chunk, std::vector<Point>& into) const;

  Scratch scratch_;
  std::vector<Part> parts_;
  std::vector<Store> stores_;
  std::size_t file_begin_ = 0;  ///< first part of the file at hand
  std::vector<Event> events_;
  std::uint64_t events_left_out_ = 0;
  Random random_{1};
  std::optional<Error> failure_;
};

}  // namespace flyball::series
