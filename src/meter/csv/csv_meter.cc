#include "meter/csv/csv_meter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_source.h"
#include "base/csv.h"
#include "base/decimal.h"
#include "base/text.h"
#include "meter/point.h"
#include "series/reader_stamp.h"

namespace flyball::meter {
namespace {

/// Header and last row that ended with its line.
struct Tail {
  std::vector<std::string> header;
  std::vector<std::string> row;
  std::string defect;
};

Result<Tail> read_tail(const std::string& path) {
  FLYBALL_ASSIGN(const auto bytes, open_bytes(path));
  CsvReader reader(*bytes);
  Tail tail;
  CsvRow row;
  for (;;) {
    FLYBALL_ASSIGN(const bool more, reader.next(row));
    if (!more) return tail;
    if (tail.header.empty()) {
      if (row.cells.size() == 1) {
        // One cell: another separator than the comma, or really one column.
        const char separator = guess_separator(row.text);
        reader.set_separator(separator);
        for (const auto cell : split(row.text, separator)) tail.header.emplace_back(trim(cell));
        continue;
      }
      for (const auto cell : row.cells) tail.header.emplace_back(trim(cell));
      continue;
    }
    if (!row.ended) continue;  // its writer is not done with it
    tail.defect = row.defect;
    tail.row.assign(row.cells.begin(), row.cells.end());
  }
}

class CsvMeter final : public Meter {
 public:
  CsvMeter(const Profile& profile, Clock& clock) : profile_(profile), clock_(clock) {}

  std::vector<MeterReading> read() override {
    auto tail = read_tail(profile_.address);
    if (!tail) return all_absent(profile_, Status::failed, tail.error().message(), clock_);
    if (tail->row.empty()) return all_absent(profile_, Status::missing, "the file has no complete row", clock_);
    if (tail->row.size() != tail->header.size()) {
      const std::string why = tail->defect.empty() ? fmt::format("the last row has {} cells, the header {}",
                                                                 tail->row.size(), tail->header.size())
                                                   : "the last row " + tail->defect;
      return all_absent(profile_, Status::garbage, why, clock_);
    }
    const auto stamp = time_of(*tail);
    if (!stamp) return all_absent(profile_, Status::garbage, stamp.error().message(), clock_);
    std::vector<MeterReading> made;
    made.reserve(profile_.points.size());
    for (const PointProfile& point : profile_.points) made.push_back(read_point(point, *tail, *stamp));
    return made;
  }

 private:
  const std::string* cell_of(const Tail& tail, const std::string& column) const {
    const auto found = std::find(tail.header.begin(), tail.header.end(), column);
    return found == tail.header.end() ? nullptr : &tail.row[static_cast<std::size_t>(found - tail.header.begin())];
  }

  /// Without a column of stamps the row is as old as our look at it.
  Result<WallTime> time_of(const Tail& tail) const {
    if (profile_.time_column.empty()) return clock_.wall();
    const std::string* cell = cell_of(tail, profile_.time_column);
    if (cell == nullptr) return fail(ErrorCode::input, "no column '" + profile_.time_column + "'");
    if (auto exact = parse_rfc3339(trim(*cell))) return exact;
    double count = 0;
    if (profile_.zone.empty() && !parse_decimal(trim(*cell), count)) {
      return fail(ErrorCode::input, "the stamp '" + cell->substr(0, 40) + "' has no zone", {}, "set meter.zone");
    }
    series::ReadOptions options;
    options.zone = profile_.zone;
    FLYBALL_ASSIGN(auto stamps, series::StampReader::make(options));
    const std::string padded = std::string(trim(*cell)) + std::string(16, '\0');  // the reader looks 16 bytes ahead
    WallTime at;
    const char* wrong =
        stamps.read(std::string_view(padded).substr(0, padded.size() - 16), series::StampUnit::by_size, at);
    if (wrong != nullptr) return fail(ErrorCode::input, "the stamp '" + cell->substr(0, 40) + "' " + wrong);
    return at;
  }

  MeterReading read_point(const PointProfile& point, const Tail& tail, WallTime stamp) const {
    MeterReading reading = blank_reading(profile_, point);
    reading.received = clock_.now();
    reading.measured = stamp;
    if (!profile_.time_column.empty()) {
      reading.clock = TimeSource::device;
      reading.measured = stamp - profile_.commissioned.clock_offset.value_or(Seconds(0));
    }
    const std::string* cell = cell_of(tail, point.column);
    if (cell == nullptr) return set_absent(reading, Status::missing, "the file has no column '" + point.column + "'");
    reading.raw = cell->substr(0, 40);
    const auto said = csv_number(*cell, point.unit);
    if (!said) return set_absent(reading, Status::missing, said.error().what);
    if (std::find(point.absent.begin(), point.absent.end(), *said) != point.absent.end()) {
      return set_absent(reading, Status::missing, "the device says not available");
    }
    set_value(reading, point, *said);
    const Seconds age = clock_.wall() - reading.measured;
    if (reading.value.ok() && age > profile_.stale_after) {
      set_absent(reading, Status::stale, "measured " + flyball::format(age) + " ago");
    }
    return reading;
  }

  Profile profile_;
  Clock& clock_;
};

}  // namespace

Result<double> csv_number(std::string_view cell, std::string_view unit) {
  std::string_view text = trim(cell);
  if (text.empty()) return fail(ErrorCode::input, "the cell is empty");
  if (!unit.empty() && text.ends_with(unit)) text = trim(text.substr(0, text.size() - unit.size()));
  double value = 0;
  if (parse_decimal(text, value)) return value;
  const std::string shown(text.substr(0, 40));
  if (text.find(',') != std::string_view::npos && text.find_first_not_of("+-0123456789.,") == std::string_view::npos) {
    return fail(ErrorCode::input, "'" + shown + "': a comma in a number means two things");
  }
  return fail(ErrorCode::input, "'" + shown + "' is no number");
}

std::unique_ptr<Meter> make_csv_meter(const Profile& profile, Clock& clock) {
  return std::make_unique<CsvMeter>(profile, clock);
}

}  // namespace flyball::meter
