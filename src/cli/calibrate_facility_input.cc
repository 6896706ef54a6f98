#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "cli/calibrate.h"
#include "cli/facility_file.h"
#include "facility/building.h"
#include "facility/frozen.h"
#include "series/reader_stamp.h"

namespace flyball::cli {
namespace {

Phase phase_of(const std::string& word, std::set<std::string>& unknown) {
  if (word.empty()) return Phase::unknown;
  const auto phase = series::phase_in_words(word);
  if (!phase) unknown.insert(word);
  return phase.value_or(Phase::unknown);
}

struct Span {
  WallTime start, stop;
  facility::PhaseKey key;
};

Result<std::vector<Span>> read_phases(const std::string& path, const FacilityMap& map, std::set<std::string>& unknown,
                                      std::vector<std::string>& warnings) {
  std::vector<WantedColumn> wanted;
  const auto text = [&](const std::string& name) {
    wanted.push_back({name, 0, 0, false, true});
    return wanted.size() - 1;
  };
  const std::size_t stop = text(map.phase_stop), label = text(map.phase_label);
  const bool typed = !map.phase_job_type.empty();
  const std::size_t type = typed ? text(map.phase_job_type) : 0;
  FLYBALL_ASSIGN(const Table table, read_table(path, {map.phase_start, map.table.zone, Fold::earlier}, wanted));
  tell(table, path, warnings);
  series::ReadOptions options;
  options.zone = map.table.zone;
  options.fold = Fold::earlier;
  FLYBALL_ASSIGN(series::StampReader stamps, series::StampReader::make(options));
  std::vector<Span> made;
  for (const TableRow& row : table.rows) {
    const auto word = [&](std::size_t column) { return table.words[static_cast<std::size_t>(row.values[column])]; };
    Span span{row.at, {}, {typed ? word(type) : map.job, phase_of(word(label), unknown)}};
    if (const char* wrong = stamps.read(word(stop), series::StampUnit::by_size, span.stop); wrong != nullptr)
      return fail(ErrorCode::input, fmt::format("column '{}' is '{}': {}", map.phase_stop, word(stop), wrong),
                  fmt::format("{}:{}", path, row.line), "write 2024-05-17T15:38:28Z, or seconds since 1970");
    made.push_back(std::move(span));
  }
  return made;
}

/// Spans and records are both in order of time; where spans overlap the one that began last holds.
void label(std::vector<facility::FacilityRecord>& records, const std::vector<Span>& spans) {
  std::size_t next = 0;
  for (facility::FacilityRecord& record : records) {
    while (next < spans.size() && spans[next].start <= record.point.at) ++next;
    for (std::size_t i = next; i > 0 && i + 8 > next; --i) {
      if (spans[i - 1].stop <= record.point.at) continue;
      record.key = spans[i - 1].key;
      break;
    }
  }
}

/// Takes out what a meter repeats, for it is no reading of that moment.
void leave_out_frozen(std::vector<facility::FacilityRecord>& records, std::vector<std::string>& warnings) {
  std::vector<double> it, facility;
  for (const facility::FacilityRecord& record : records) {
    it.push_back(record.point.it.value());
    facility.push_back(record.point.facility.value());
  }
  std::vector<bool> out(records.size(), false);
  const auto look = [&](std::span<const double> readings, const char* what) {
    for (const facility::Stretch& stretch : facility::frozen_stretches(readings)) {
      warnings.push_back(fmt::format("the meter of {} stands still at {} for {} rows from {} on, which are left out",
                                     what, format(Watts(readings[stretch.first])), stretch.count,
                                     format_rfc3339(records[stretch.first].point.at)));
      std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(stretch.first), stretch.count, true);
    }
  };
  look(it, "the IT");
  look(facility, "the utility");
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (out[i]) continue;
    if (kept != i) records[kept] = std::move(records[i]);
    ++kept;
  }
  records.resize(kept);
}

}  // namespace

Result<std::vector<facility::FacilityRecord>> read_facility(const std::vector<std::string>& files,
                                                            const FacilityMap& map, const CalibrateOptions& options,
                                                            std::vector<std::string>& warnings) {
  for (const char* needed : {"it_w", "utility_w"})
    if (!map.table.columns.empty() && !map.table.columns.contains(needed))
      return fail(ErrorCode::input, fmt::format("the map does not say columns.{}", needed), options.map,
                  fmt::format("add columns.{} = \"name of the column\"", needed));
  facility::Weather air({});
  const bool weather = !options.weather.empty();
  if (weather) {
    std::vector<std::string> columns = {map.wet_bulb};
    if (map.wet_bulb.empty()) columns = {map.dry_bulb};
    if (map.wet_bulb.empty() && !map.humidity.empty()) columns.push_back(map.humidity);
    if (columns[0].empty() || map.weather_time.empty())
      return fail(ErrorCode::input, "the map does not say the weather's columns", map.format,
                  "add weather.time and weather.wet_bulb, or weather.dry_bulb and weather.humidity");
    FLYBALL_ASSIGN(air, read_weather(options.weather, {map.weather_time, map.table.zone, Fold::earlier}, columns,
                                     map.fahrenheit, warnings));
  }
  std::vector<facility::FacilityRecord> records;
  std::set<std::string> unknown;
  std::uint64_t not_metered = 0;
  for (const std::string& file : files)
    FLYBALL_TRY(read_facility_file(file, map.table, series::RowOrder::any, warnings, [&](FacilitySample sample) {
      if (weather && !sample.wet_bulb) sample.wet_bulb = air.at(sample.at);
      if (sample.jobs.empty() && !map.job.empty()) sample.jobs.emplace_back();
      for (JobShare& job : sample.jobs)
        if (job.type.empty()) job.type = map.job;
      if (auto record = facility::record_of(sample)) {
        records.push_back(*std::move(record));
      } else {
        ++not_metered;
      }
    }));
  const auto earlier = [](const auto& a, const auto& b) { return a.point.at < b.point.at; };
  std::stable_sort(records.begin(), records.end(), earlier);
  const auto same = [](const auto& a, const auto& b) { return a.point.at == b.point.at; };
  const auto repeated = std::unique(records.begin(), records.end(), same);
  if (repeated != records.end())
    warnings.push_back(fmt::format("{} rows have a time that was already there and are left out",
                                   std::distance(repeated, records.end())));
  records.erase(repeated, records.end());
  leave_out_frozen(records, warnings);
  facility::name_idle(records);  // outside the phases of a file of its own nothing is known, idling neither
  if (!options.phases.empty()) {
    FLYBALL_ASSIGN(const std::vector<Span> spans, read_phases(options.phases, map, unknown, warnings));
    label(records, spans);
  }
  if (not_metered > 0)
    warnings.push_back(
        fmt::format("{} rows have no power of the IT or of the utility above 0 and are left out", not_metered));
  if (!unknown.empty())
    warnings.push_back(
        fmt::format("'{}'{} no phase that is known; it counts as unknown", *unknown.begin(),
                    unknown.size() == 1 ? " is" : fmt::format(" and {} other words are", unknown.size() - 1)));
  if (records.empty()) return fail(ErrorCode::input, "the files have no usable rows", files.empty() ? "" : files[0]);
  return records;
}

}  // namespace flyball::cli
