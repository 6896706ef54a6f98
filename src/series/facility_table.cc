#include "series/facility_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "base/csv.h"
#include "series/rows_in_time.h"

namespace flyball::series {
namespace {

constexpr std::uint32_t kApart = UINT32_MAX, kRepeated = UINT32_MAX - 1;

/// Of the rows that have a time, as they stand.
struct Plan {
  std::vector<WallTime> at;
  std::vector<std::uint32_t> rank;  ///< the how manieth sample it becomes; kApart, kRepeated
  bool cut = false;
};

/// Gives whole rows behind the header on, while `each` says true; true in the end: the last line has no end.
Result<bool> go_through(ByteSource& bytes, char separator, const FacilityMap& map, const std::string& path,
                        std::optional<FacilityRows>& rows, const std::function<Result<bool>(const CsvRow&)>& each) {
  CsvReader csv(bytes, {.separator = separator});
  CsvRow row;
  bool cut = false;
  while (true) {
    FLYBALL_ASSIGN(const bool there, csv.next(row));
    if (!there) break;
    if (!rows) {
      FLYBALL_ASSIGN(FacilityRows made, FacilityRows::bind(row.cells, map, path, separator));
      rows.emplace(std::move(made));
      continue;
    }
    if (!row.ended) {  // its last number may be cut, and nobody would see it
      cut = true;
      break;
    }
    if (!row.defect.empty())
      return fail(ErrorCode::input, fmt::format("the row cannot be used: {}", row.defect),
                  fmt::format("{}:{}", path, row.line), "mend the row or take it out");
    FLYBALL_ASSIGN(const bool on, each(row));
    if (!on) return false;
  }
  if (!rows) return fail(ErrorCode::input, "the file is empty", path, "give a CSV file with a header");
  if (const std::string damage = bytes.damage(); !damage.empty())
    return fail(ErrorCode::input, "the file is damaged: " + damage, path, "copy it again");
  return cut;
}

void set_apart(Plan& plan, const std::vector<std::uint32_t>& by_time) {
  struct Run {
    std::size_t from = 0, to = 0, times = 0;
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < by_time.size(); ++i) {
    if (i == 0 || far_ahead(plan.at[by_time[i]], plan.at[by_time[i - 1]])) runs.push_back({i, i, 0});
    runs.back().to = i + 1;
    // A clock that stands still confirms nothing.
    if (runs.back().times == 0 || plan.at[by_time[i]] != plan.at[by_time[i - 1]]) ++runs.back().times;
  }
  std::size_t longest = 0;
  for (const Run& run : runs) longest = std::max(longest, run.times);
  for (const Run& run : runs)
    if (run.times < std::min(longest, kConfirmingRows))
      for (std::size_t i = run.from; i < run.to; ++i) plan.rank[by_time[i]] = kApart;
}

void put_in_order(Plan& plan, RowOrder order) {
  std::vector<std::uint32_t> by_time(plan.at.size());
  std::iota(by_time.begin(), by_time.end(), 0U);
  std::stable_sort(by_time.begin(), by_time.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return plan.at[a] < plan.at[b]; });
  plan.rank.assign(plan.at.size(), 0);
  set_apart(plan, by_time);
  std::uint32_t next = 0;
  if (order == RowOrder::any) {
    for (std::uint32_t& rank : plan.rank)
      if (rank != kApart) rank = next++;
    return;
  }
  std::optional<WallTime> last;
  for (const std::uint32_t row : by_time) {
    if (plan.rank[row] == kApart) continue;
    plan.rank[row] = last && plan.at[row] == *last ? kRepeated : next++;
    last = plan.at[row];
  }
}

Result<Plan> plan_of(ByteSource& bytes, char separator, const FacilityMap& map, const std::string& path, RowOrder order,
                     const FacilityTableLimits& limits) {
  Plan plan;
  std::optional<FacilityRows> rows;
  const auto note = [&](const CsvRow& row) -> Result<bool> {
    FLYBALL_ASSIGN(const std::optional<WallTime> at, rows->read_time(row.cells, row.line));
    if (at) plan.at.push_back(*at);
    if (plan.at.size() > limits.rows)
      return fail(ErrorCode::input, fmt::format("more than {} rows", limits.rows), path, "give coarser intervals");
    return true;
  };
  FLYBALL_ASSIGN(plan.cut, go_through(bytes, separator, map, path, rows, note));
  put_in_order(plan, order);
  return plan;
}

/// Gives samples on in the order of their ranks.
class InRank {
 public:
  explicit InRank(const std::function<void(FacilitySample)>& each) : each_(each) {}

  void take(std::uint32_t rank, FacilitySample sample) {
    if (rank != next_) {
      held_.emplace(rank, std::move(sample));
      return;
    }
    each_(std::move(sample));
    for (++next_; !held_.empty() && held_.begin()->first == next_; ++next_) {
      each_(std::move(held_.begin()->second));
      held_.erase(held_.begin());
    }
  }
  std::size_t held() const { return held_.size(); }
  std::uint64_t given() const { return next_; }

 private:
  const std::function<void(FacilitySample)>& each_;
  std::map<std::uint32_t, FacilitySample> held_;
  std::uint32_t next_ = 0;
};

}  // namespace

std::string to_text(const FacilityTableCounts& counts) {
  std::string text;
  const auto tell = [&](std::uint64_t count, const char* what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  };
  tell(counts.cells.impossible, "values are impossible and left out");
  tell(counts.sorted, "rows are not later than one before them and were sorted by time");
  tell(counts.repeated, "rows have a time that was already there and are left out");
  tell(counts.apart, "rows are more than a day from all others, too few to be an outage's end, and set aside");
  tell(counts.cells.without_time, "rows have no time and are left out");
  tell(counts.cells.unknown_phases, "words are no phase that is known and count as unknown");
  tell(counts.cut ? 1 : 0, "line, the last, has no end and is left out, for its last number may be cut");
  add(counts.first_apart);
  add(counts.first_repeated);
  for (const std::string& example : counts.cells.examples) add(example);
  add(counts.cells.first_hour_back);
  return text;
}

Result<FacilityTableCounts> read_facility(const OpenBytes& open, char separator, const FacilityMap& map,
                                          const std::string& path, const std::function<void(FacilitySample)>& each,
                                          RowOrder order, const FacilityTableLimits& limits) {
  FLYBALL_ASSIGN(const auto stamps, open());
  FLYBALL_ASSIGN(const Plan plan, plan_of(*stamps, separator, map, path, order, limits));
  FacilityTableCounts counts;
  std::optional<FacilityRows> rows;
  InRank in_rank(each);
  std::size_t number = 0;
  std::optional<WallTime> latest;
  const auto changed = [&] {
    return fail(ErrorCode::failed, "the file changed while it was read", path, "read a copy of it");
  };
  const auto take = [&](const CsvRow& line) -> Result<bool> {
    FLYBALL_ASSIGN(std::optional<FacilityRow> row, rows->read(line.cells, line.line));
    if (!row) return true;
    if (number == plan.at.size()) return false;  // it was appended since then
    const WallTime at = row->sample.at;
    if (at != plan.at[number]) return changed();
    const std::uint32_t rank = plan.rank[number++];
    const auto leave_out = [&](std::uint64_t& count, std::string& first) {
      if (++count == 1) first = cell_in_words(path, row->line, rows->time_column(), row->stamp);
    };
    if (rank == kApart || rank == kRepeated) {
      rank == kApart ? leave_out(counts.apart, counts.first_apart) : leave_out(counts.repeated, counts.first_repeated);
      return true;
    }
    if (order == RowOrder::of_time && latest && at < *latest) ++counts.sorted;
    latest = std::max(latest.value_or(at), at);
    in_rank.take(rank, std::move(row->sample));
    if (in_rank.held() > limits.held)
      return fail(ErrorCode::input, fmt::format("more than {} rows stand before one that is earlier", limits.held),
                  fmt::format("{}:{}", path, row->line),
                  "sort the file by time; newest first: (head -n 1 FILE; tail -n +2 FILE | tac) > SORTED");
    return true;
  };
  FLYBALL_ASSIGN(const auto bytes, open());
  FLYBALL_TRY(go_through(*bytes, separator, map, path, rows, take));
  if (number != plan.at.size()) return changed();
  counts.rows = in_rank.given();
  counts.cells = rows->counts();
  counts.cut = plan.cut;
  counts.zone_assumed = rows->zone_assumed();
  return counts;
}

}  // namespace flyball::series
