#include "series/facility_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace flyball::series {
namespace {

constexpr std::size_t kShown = 5, kLongestShown = 40;

std::string shown(std::string_view cell) {
  return std::string(cell.substr(0, kLongestShown)) + (cell.size() > kLongestShown ? "…" : "");
}

bool says_nothing(std::string_view cell) {
  if (cell.empty()) return true;
  static constexpr std::array<std::string_view, 11> kWords = {
      "-", "na", "n/a", "nan", "null", "none", "[n/a]", "err", "err!", "[not supported]", "#n/a"};
  const std::string word = to_lower(cell);
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + shown(name);
  constexpr std::size_t kLongest = 400;
  return text.size() > kLongest ? text.substr(0, kLongest) + ", …" : text;
}

constexpr std::array<std::string_view, 4> kJobNumbers = {"_gpus_fraction", "_tokens_per_s", "_utilisation_fraction",
                                                         "_loss"};
constexpr std::array<double, 4> kJobMost = {1, 1e15, 1, 1e9};

/// What a number of this unit can be anywhere.
void set_range(FacilityField& field, std::string_view name, std::string_view unit) {
  constexpr double kMostWatts = 1e10, kMostCount = 9e15;
  const auto range = [&](double low, double high) {
    field.low = low;
    field.high = high;
  };
  const bool either_way = name == "utility_w" || name == "generated_w" || name == "discharged_w";
  if (unit == "W") return range(either_way ? -kMostWatts : 0, kMostWatts);
  if (unit == "C") return range(-60, 150);
  if (unit == "Hz") return range(0, 1e11);
  if (unit == "V") return range(0, 1e6);
  if (name == "on_battery") return range(0, 1);
  if (name.find("_fraction") != name.npos) return range(0, 2);
  range(0, kMostCount);
}

/// "rack12_w" → 11 and "_w".
bool take_number(std::string_view name, std::string_view prefix, std::size_t most, std::size_t& index,
                 std::string_view& rest) {
  if (!name.starts_with(prefix)) return false;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + prefix.size(), end, index);
  if (read.ec != std::errc() || index < 1 || index > most) return false;
  --index;
  rest = std::string_view(read.ptr, static_cast<std::size_t>(end - read.ptr));
  return true;
}

std::optional<FacilityField> rack_field(std::size_t index, std::string_view rest) {
  using Of = FacilityField::Of;
  if (rest == "_w") return FacilityField{Of::rack_power, nullptr, index, 0, 0, 1e7};
  if (rest == "_inlet_c") return FacilityField{Of::rack_inlet, nullptr, index, 0, -60, 150};
  return std::nullopt;
}

std::optional<FacilityField> job_field(std::size_t index, std::string_view rest) {
  using Of = FacilityField::Of;
  if (rest == "_type") return FacilityField{Of::job_type, nullptr, index, 0, 0, 0};
  if (rest == "_phase") return FacilityField{Of::job_phase, nullptr, index, 0, 0, 0};
  for (std::size_t i = 0; i < kJobNumbers.size(); ++i)
    if (rest == kJobNumbers[i])
      return FacilityField{Of::job, nullptr, index, i, i == 3 ? -kJobMost[i] : 0, kJobMost[i]};
  return std::nullopt;
}

void set_field(FacilitySample& sample, const FacilityField& field, double value) {
  using Of = FacilityField::Of;
  if (field.of == Of::whole) return field.whole->set(sample, value);
  if (field.of == Of::job) {
    if (sample.jobs.size() <= field.index) sample.jobs.resize(field.index + 1);
    JobShare& job = sample.jobs[field.index];
    if (field.number == 0) job.gpus_fraction = value;
    if (field.number == 1) job.tokens_per_s = value;
    if (field.number == 2) job.utilisation_fraction = value;
    if (field.number == 3) job.loss = value;
    return;
  }
  if (sample.racks.size() <= field.index) sample.racks.resize(field.index + 1);
  RackSample& rack = sample.racks[field.index];
  if (field.of == Of::rack_power) rack.power = Watts(value);
  if (field.of == Of::rack_inlet) rack.inlet = Celsius(value);
}

/// The place of a column by its name, or by "#3"; past the end if there is none.
std::size_t place_of(const std::vector<std::string>& header, const std::string& name) {
  const auto found = std::find(header.begin(), header.end(), name);
  std::size_t number = 0;
  const char* const end = name.data() + name.size();
  if (found == header.end() && name.starts_with('#') && std::from_chars(name.data() + 1, end, number).ptr == end)
    return number >= 1 && number <= header.size() ? number - 1 : header.size();
  return static_cast<std::size_t>(found - header.begin());
}

std::string cell(std::optional<double> value) { return value ? fmt::format("{:.9g}", *value) : std::string(); }

}  // namespace

std::optional<FacilityField> find_facility_field(std::string_view name) {
  if (name == kSoftwareColumn) return FacilityField{FacilityField::Of::software, nullptr, 0, 0, 0, 0};
  std::size_t index = 0;
  std::string_view rest;
  if (take_number(name, "rack", kMostRacks, index, rest)) return rack_field(index, rest);
  if (take_number(name, "job", kMostJobs, index, rest)) return job_field(index, rest);
  const FacilityColumn* const column = find_facility_column(name);
  if (column == nullptr) return std::nullopt;
  FacilityField field{FacilityField::Of::whole, column, 0, 0, 0, 0};
  set_range(field, name, column->unit);
  return field;
}

std::vector<std::string> facility_header(std::size_t racks, std::size_t jobs) {
  std::vector<std::string> names = {std::string(kTimeColumn)};
  for (const FacilityColumn& column : facility_columns()) names.emplace_back(column.name);
  names.emplace_back(kSoftwareColumn);
  for (std::size_t i = 1; i <= racks; ++i) {
    names.push_back(fmt::format("rack{}_w", i));
    names.push_back(fmt::format("rack{}_inlet_c", i));
  }
  for (std::size_t i = 1; i <= jobs; ++i) {
    names.push_back(fmt::format("job{}_type", i));
    names.push_back(fmt::format("job{}_phase", i));
    for (const std::string_view number : kJobNumbers) names.push_back(fmt::format("job{}{}", i, number));
  }
  return names;
}

std::vector<std::string> facility_cells(const FacilitySample& sample, std::size_t racks, std::size_t jobs) {
  std::vector<std::string> cells = {format_rfc3339(sample.at)};
  for (const FacilityColumn& column : facility_columns()) cells.push_back(cell(column.get(sample)));
  cells.push_back(sample.software);
  for (std::size_t i = 0; i < racks; ++i) {
    const RackSample rack = i < sample.racks.size() ? sample.racks[i] : RackSample{};
    cells.push_back(rack.power ? cell(rack.power->value()) : "");
    cells.push_back(rack.inlet ? cell(rack.inlet->value()) : "");
  }
  for (std::size_t i = 0; i < jobs; ++i) {
    if (i >= sample.jobs.size()) {
      cells.resize(cells.size() + 2 + kJobNumbers.size());
      continue;
    }
    const JobShare& job = sample.jobs[i];
    cells.push_back(job.type);
    cells.emplace_back(to_string(job.phase));
    cells.push_back(cell(job.gpus_fraction));
    cells.push_back(cell(job.tokens_per_s));
    cells.push_back(cell(job.utilisation_fraction));
    cells.push_back(cell(job.loss));
  }
  return cells;
}

std::optional<Phase> phase_in_words(std::string_view word) {
  if (word == "eval") return Phase::evaluation;
  if (word == "train") return Phase::training;
  if (word == "init") return Phase::startup;
  const auto phase = parse_phase(word);
  return phase ? std::optional(*phase) : std::nullopt;
}

Result<FacilityRows> FacilityRows::bind(std::span<const std::string_view> header, const FacilityMap& map,
                                        std::string path, char separator) {
  ReadOptions options;
  options.zone = map.zone;
  options.fold = Fold::in_order;
  FLYBALL_ASSIGN(StampReader stamps, StampReader::make(options));
  FacilityRows rows(std::move(path), std::move(stamps), separator);
  for (const std::string_view cell : header) rows.header_.emplace_back(trim(cell));
  FLYBALL_TRY(rows.bind_columns(map));
  return rows;
}

Result<> FacilityRows::bind_columns(const FacilityMap& map) {
  const auto find = [&](const std::string& name) { return place_of(header_, name); };
  const std::string where = path_ + ":1";
  const std::string remedy = "name the columns in a map, --map FILE (flyball calibrate explain --help)";
  const auto mapped_time = map.columns.find(std::string(kTimeColumn));
  const std::string time = mapped_time == map.columns.end() ? std::string(kTimeColumn) : mapped_time->second.name;
  time_ = find(time);
  if (time_ == header_.size())
    return fail(ErrorCode::input, fmt::format("there is no column '{}'; there are: {}", shown(time), listed(header_)),
                where, remedy);
  stamp_unit_ = stamp_unit_of(to_lower(time));
  for (const auto& [ours, theirs] : map.columns) {
    if (ours == kTimeColumn) continue;
    const auto field = find_facility_field(ours);
    const std::size_t cell = find(theirs.name);
    if (!field) return fail(ErrorCode::input, fmt::format("'{}' is no column of a building", shown(ours)), where);
    if (cell == header_.size())
      return fail(ErrorCode::input,
                  fmt::format("there is no column '{}'; there are: {}", shown(theirs.name), listed(header_)), where,
                  "mend the map");
    bound_.push_back({cell, *field, theirs.scale, theirs.offset});
  }
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (i == time_ || !map.columns.empty()) continue;
    if (const auto field = find_facility_field(header_[i])) {
      bound_.push_back({i, *field, 1, 0});
    } else {
      unknown_.push_back(header_[i]);
    }
  }
  if (bound_.empty()) return fail(ErrorCode::input, "no column is known; there are: " + listed(header_), where, remedy);
  for (std::size_t i = 0; i < bound_.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (header_[bound_[i].cell] == header_[bound_[k].cell] && map.columns.empty())
        return fail(ErrorCode::input, fmt::format("there are two columns '{}'", shown(header_[bound_[i].cell])), where,
                    "rename one of them");
  return {};
}

std::vector<std::string> FacilityRows::known() const {
  std::vector<std::string> names;
  names.reserve(bound_.size());
  for (const Bound& bound : bound_) names.push_back(header_[bound.cell]);
  return names;
}

std::string cell_in_words(const std::string& path, std::uint64_t line, const std::string& column,
                          std::string_view cell) {
  return fmt::format("{}:{}: column '{}' is '{}'", path, line, shown(column), shown(cell));
}

std::string FacilityRows::cell_text(std::uint64_t line, std::size_t cell, std::string_view text) const {
  return cell_in_words(path_, line, header_[cell], text);
}

void FacilityRows::example(std::uint64_t line, std::size_t cell, std::string_view text) {
  if (counts_.examples.size() < kShown) counts_.examples.push_back(cell_text(line, cell, text));
}

Result<> FacilityRows::read_cell(const Bound& bound, std::string_view cell, std::uint64_t line,
                                 FacilitySample& sample) {
  using Of = FacilityField::Of;
  const auto wrong = [&](const std::string& what, const std::string& remedy) {
    return fail(ErrorCode::input, fmt::format("column '{}' is '{}': {}", header_[bound.cell], shown(cell), what),
                fmt::format("{}:{}", path_, line), remedy);
  };
  if (bound.field.of == Of::software) {
    sample.software = std::string(cell.substr(0, 200));
    return {};
  }
  if (says_nothing(cell)) return {};
  if (bound.field.of == Of::job_type || bound.field.of == Of::job_phase) {
    if (sample.jobs.size() <= bound.field.index) sample.jobs.resize(bound.field.index + 1);
    JobShare& job = sample.jobs[bound.field.index];
    if (bound.field.of == Of::job_type) {
      job.type = std::string(cell.substr(0, 100));
      return {};
    }
    const auto phase = phase_in_words(cell);
    if (!phase) {
      ++counts_.unknown_phases;
      example(line, bound.cell, cell);
    }
    job.phase = phase.value_or(Phase::unknown);
    return {};
  }
  double value = 0;
  if (const auto told = numbers_.read(cell, line, value)) return wrong(told->what, told->remedy);
  value = value * bound.scale + bound.offset;
  if (value < bound.field.low || value > bound.field.high) {
    ++counts_.impossible;
    example(line, bound.cell, cell);
    return {};
  }
  set_field(sample, bound.field, value);
  return {};
}

/// What local time does in autumn, seen where stamps say no offset; or a named zone's hour whose rows are in no order.
void FacilityRows::look_for_autumn(std::uint64_t line, std::string_view stamp, WallTime at, bool unsure) {
  constexpr Seconds kLeast(1800), kMost(3600);
  const std::optional<WallTime> before = std::exchange(row_before_, at);
  if (before && at < *before) ++counts_.falling;
  const bool rose = std::exchange(rising_, before && at > *before);  // where all go back it is no autumn
  const bool back = stamps_.assumed_utc() && rose && at + kLeast <= *before && *before <= at + kMost;
  if (!back && !unsure) return;
  if (++counts_.hours_back > 1) return;
  counts_.first_hour_back =
      cell_text(line, time_, stamp) +
      (unsure ? ", of the hour that the zone repeats in autumn, and the rows' order does not say which of the two is "
                "meant: the first was taken; write UTC stamps, or rows in order of time"
              : ": stamps without offset go back by up to an hour, as local time does in autumn; name the zone in a "
                "map (zone = \"Europe/Berlin\"), or write UTC stamps");
}

Result<std::optional<WallTime>> FacilityRows::read_time(std::span<const std::string_view> cells, std::uint64_t line) {
  if (cells.size() != header_.size())
    return fail(ErrorCode::input, fmt::format("the row has {} cells and the header {}", cells.size(), header_.size()),
                fmt::format("{}:{}", path_, line), row_remedy(cells.size(), header_.size()));
  const std::string_view stamp = trim(cells[time_]);
  if (stamp == header_[time_]) return std::optional<WallTime>();  // the header once more
  WallTime at;
  const std::uint64_t unsure = stamps_.unsure();
  const char* const wrong = says_nothing(stamp) ? "empty" : stamps_.read(stamp, stamp_unit_, at);
  if (wrong != nullptr) {
    const std::string_view why = wrong;
    if (why == "empty" || why.find("in the hour that the zone") != why.npos) {
      ++counts_.without_time;
      example(line, time_, stamp);
      return std::optional<WallTime>();
    }
    return fail(ErrorCode::input, fmt::format("column '{}' is '{}': {}", header_[time_], shown(stamp), why),
                fmt::format("{}:{}", path_, line), "write 2024-05-17T15:38:28Z, or seconds since 1970");
  }
  look_for_autumn(line, stamp, at, stamps_.unsure() > unsure);
  return std::optional(at);
}

Result<std::optional<FacilityRow>> FacilityRows::read(std::span<const std::string_view> cells, std::uint64_t line,
                                                      std::uint64_t place) {
  FLYBALL_ASSIGN(const std::optional<WallTime> at, read_time(cells, line));
  if (!at) return std::optional<FacilityRow>();
  FacilityRow row{{}, place, line, std::string(trim(cells[time_]))};
  row.sample.at = *at;
  for (const Bound& bound : bound_) FLYBALL_TRY(read_cell(bound, trim(cells[bound.cell]), line, row.sample));
  std::erase_if(row.sample.jobs, [](const JobShare& job) { return job.type.empty() && job.phase == Phase::unknown; });
  return std::optional(std::move(row));
}

std::string facility_line(std::span<const std::string> cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() && &cell == cells.data() ? "" : ",") + csv_cell(cell);
  return line + "\n";
}

}  // namespace flyball::series
