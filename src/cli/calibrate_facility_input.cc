#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/calibrate.h"
#include "facility/building.h"
#include "series/reader_stamp.h"

namespace flyball::cli {
namespace {

constexpr double kMostWatts = 1e10;
constexpr double kColdest = -60, kHottest = 90;

/// A phase as jobs and people call it.
Phase phase_of(const std::string& word, std::set<std::string>& unknown) {
  if (word == "eval") return Phase::evaluation;
  if (word == "train") return Phase::training;
  if (word == "init") return Phase::startup;
  if (word.empty()) return Phase::unknown;
  const auto phase = parse_phase(word);
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
  FLYBALL_ASSIGN(const Table table, read_table(path, {map.phase_start, map.zone, Fold::earlier}, wanted));
  tell(table, path, warnings);
  series::ReadOptions options;
  options.zone = map.zone;
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

/// Where a file's columns are among those that are read.
class Rows {
 public:
  explicit Rows(const FacilityMap& map) : map_(map) {
    for (const FacilityMap::Column& column : map.columns) {
      const bool watts = column.what->unit == "W", celsius = column.what->unit == "C";
      const double low = watts ? -kMostWatts : celsius ? kColdest : -1e12;
      const double high = watts ? kMostWatts : celsius ? kHottest : 1e15;
      wanted_.push_back({column.name, low / column.unit + column.offset, high / column.unit + column.offset, true});
    }
    phase_ = text(map.phase);
    type_ = text(map.job_type);
    for (std::size_t job = 1; job <= map.jobs; ++job) {
      jobs_.push_back(wanted_.size());
      text(fmt::format("job{}_type", job));
      text(fmt::format("job{}_phase", job));
      wanted_.push_back({fmt::format("job{}_gpus_fraction", job), 0, 1, true});
    }
  }
  const std::vector<WantedColumn>& wanted() const { return wanted_; }

  FacilitySample sample(const Table& table, const TableRow& row, std::set<std::string>& unknown) const {
    FacilitySample made;
    made.at = row.at;
    for (std::size_t i = 0; i < map_.columns.size(); ++i) {
      const FacilityMap::Column& column = map_.columns[i];
      if (std::isfinite(row.values[i])) column.what->set(made, (row.values[i] - column.offset) * column.unit);
    }
    const auto word = [&](std::size_t at) -> const std::string& {
      return table.words[static_cast<std::size_t>(row.values[at])];
    };
    for (const std::size_t at : jobs_) {
      if (word(at).empty()) continue;
      JobShare job;
      job.type = word(at);
      job.phase = phase_of(word(at + 1), unknown);
      if (std::isfinite(row.values[at + 2])) job.gpus_fraction = row.values[at + 2];
      made.jobs.push_back(std::move(job));
    }
    if (phase_ == 0 && type_ == 0 && map_.job.empty()) return made;
    JobShare job;
    job.type = type_ == 0 ? map_.job : word(type_);
    job.phase = phase_ == 0 ? Phase::unknown : phase_of(word(phase_), unknown);
    made.jobs.push_back(std::move(job));
    return made;
  }

 private:
  /// 0: there is none; the first columns are numbers.
  std::size_t text(const std::string& name) {
    if (name.empty()) return 0;
    wanted_.push_back({name, 0, 0, false, true});
    return wanted_.size() - 1;
  }
  const FacilityMap& map_;
  std::vector<WantedColumn> wanted_;
  std::size_t phase_ = 0, type_ = 0;
  std::vector<std::size_t> jobs_;  ///< where each one's three columns begin
};

}  // namespace

Result<std::vector<facility::FacilityRecord>> read_facility(const std::vector<std::string>& files,
                                                            const FacilityMap& map, const CalibrateOptions& options,
                                                            std::vector<std::string>& warnings) {
  facility::Weather air({});
  const bool weather = !options.weather.empty();
  if (weather) {
    std::vector<std::string> columns = {map.wet_bulb};
    if (map.wet_bulb.empty()) columns = {map.dry_bulb};
    if (map.wet_bulb.empty() && !map.humidity.empty()) columns.push_back(map.humidity);
    if (columns[0].empty() || map.weather_time.empty())
      return fail(ErrorCode::input, "the map does not say the weather's columns", map.format,
                  "add weather.time and weather.wet_bulb, or weather.dry_bulb and weather.humidity");
    FLYBALL_ASSIGN(air, read_weather(options.weather, {map.weather_time, map.zone, Fold::earlier}, columns,
                                     map.fahrenheit, warnings));
  }
  std::vector<facility::FacilityRecord> records;
  std::set<std::string> unknown;
  std::uint64_t not_metered = 0;
  const Rows rows(map);
  for (const std::string& file : files) {
    FLYBALL_ASSIGN(const Table table, read_table(file, {map.time, map.zone, Fold::earlier}, rows.wanted()));
    tell(table, file, warnings);
    for (const TableRow& row : table.rows) {
      FacilitySample sample = rows.sample(table, row, unknown);
      if (weather && !sample.wet_bulb) sample.wet_bulb = air.at(row.at);
      auto record = facility::record_of(sample);
      if (!record) {
        ++not_metered;
        continue;
      }
      records.push_back(*std::move(record));
    }
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.point.at < b.point.at; };
  std::stable_sort(records.begin(), records.end(), earlier);
  if (!options.phases.empty()) {
    FLYBALL_ASSIGN(const std::vector<Span> spans, read_phases(options.phases, map, unknown, warnings));
    label(records, spans);
  }
  facility::name_idle(records);
  if (not_metered > 0)
    warnings.push_back(fmt::format("{} rows have no power of the IT or of the utility and are left out", not_metered));
  if (!unknown.empty())
    warnings.push_back(fmt::format("'{}' is no phase that is known, nor are {} others; they count as unknown",
                                   *unknown.begin(), unknown.size() - 1));
  if (records.empty()) return fail(ErrorCode::input, "the files have no usable rows", files.empty() ? "" : files[0]);
  return records;
}

}  // namespace flyball::cli
