#include "series/facility_table.h"

#include <fmt/format.h>

#include <optional>

#include "base/csv.h"

namespace flyball::series {

std::string to_text(const FacilityTableCounts& counts) {
  std::string text;
  const auto tell = [&](std::uint64_t count, const char* what) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  };
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  };
  tell(counts.cells.impossible, "values are impossible and left out");
  tell(counts.order.out_of_order, "rows are not later than the one before and left out");
  tell(counts.order.ahead, "rows are more than a day ahead of those around them and set aside");
  tell(counts.cells.without_time, "rows have no time and are left out");
  tell(counts.cells.unknown_phases, "words are no phase that is known and count as unknown");
  tell(counts.cut ? 1 : 0, "line, the last, has no end and is left out, for its last number may be cut");
  add(counts.order.first_ahead);
  add(counts.order.first_back);
  for (const std::string& example : counts.cells.examples) add(example);
  add(counts.cells.first_hour_back);
  return text;
}

Result<FacilityTableCounts> read_facility(ByteSource& bytes, char separator, const FacilityMap& map,
                                          const std::string& path, const std::function<void(FacilitySample)>& each,
                                          RowOrder order) {
  CsvReader csv(bytes, {.separator = separator});
  CsvRow row;
  std::optional<FacilityRows> rows;
  std::optional<RowsInTime> in_time;
  FacilityTableCounts counts;
  while (true) {
    FLYBALL_ASSIGN(const bool there, csv.next(row));
    if (!there) break;
    if (!rows) {
      FLYBALL_ASSIGN(FacilityRows made, FacilityRows::bind(row.cells, map, path));
      rows.emplace(std::move(made));
      in_time.emplace(path, rows->time_column());
      continue;
    }
    if (!row.ended) {  // its last number may be cut, and nobody would see it
      counts.cut = true;
      break;
    }
    if (!row.defect.empty())
      return fail(ErrorCode::input, fmt::format("the row cannot be used: {}", row.defect),
                  fmt::format("{}:{}", path, row.line), "mend the row or take it out");
    FLYBALL_ASSIGN(std::optional<FacilityRow> read, rows->read(row.cells, row.line));
    if (!read) continue;
    if (order == RowOrder::any) {
      ++counts.order.rows;
      each(std::move(read->sample));
      continue;
    }
    for (FacilityRow& ready : in_time->take(*std::move(read))) each(std::move(ready.sample));
  }
  if (!rows) return fail(ErrorCode::input, "the file is empty", path, "give a CSV file with a header");
  for (FacilityRow& ready : in_time->finish()) each(std::move(ready.sample));
  if (const std::string damage = bytes.damage(); !damage.empty())
    return fail(ErrorCode::input, "the file is damaged: " + damage, path, "copy it again");
  counts.cells = rows->counts();
  if (order == RowOrder::of_time) counts.order = in_time->take_counts();
  counts.zone_assumed = rows->zone_assumed();
  return counts;
}

}  // namespace flyball::series
