// Events as CSV, and our own export of points: tables whose rows are not one device's values.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/csv.h"
#include "base/decimal.h"
#include "base/text.h"
#include "series/reader_formats.h"
#include "series/reader_stamp.h"

namespace flyball::series {
namespace {

/// Finds columns by name in the first row; the rows behind it are given one by one.
class NamedColumns {
 public:
  explicit NamedColumns(std::vector<std::string_view> wanted) : wanted_(std::move(wanted)), places_(wanted_.size()) {}

  bool take_header(const CsvRow& row) {
    if (!row.defect.empty()) return false;
    header_ = row.text;
    cells_ = row.cells.size();
    for (std::size_t w = 0; w < wanted_.size(); ++w) {
      for (std::size_t c = 0; c < row.cells.size(); ++c) {
        if (to_lower(trim(row.cells[c])) == wanted_[w]) places_[w] = c + 1;
      }
    }
    return true;
  }
  bool has(std::size_t column) const { return places_[column] > 0; }
  bool is_header(const CsvRow& row) const { return row.text == header_; }
  std::size_t cells() const { return cells_; }
  /// Blank where the file lacks the column.
  std::string_view cell(const CsvRow& row, std::size_t column) const {
    return has(column) ? trim(row.cells[places_[column] - 1]) : std::string_view();
  }
  /// The column's cell may be cut: it is the last one of a line without end.
  bool doubtful(const CsvRow& row, std::size_t column) const { return !row.ended && places_[column] == cells_; }

 private:
  std::vector<std::string_view> wanted_;
  std::vector<std::size_t> places_;  ///< 1 + the cell; 0 = not there
  std::string header_;
  std::size_t cells_ = 0;
};

/// Calls `use(row)` for each row that has as many cells as the header, sets the others aside.
template <class Use>
Result<> for_each_row(ByteSource& bytes, const ReadOptions& options, Intake& intake, NamedColumns& columns, Use use) {
  CsvOptions csv;
  csv.max_line_bytes = options.max_line_bytes;
  CsvReader reader(bytes, csv);
  CsvRow row;
  FLYBALL_ASSIGN(bool more, reader.next(row));
  if (!more || !columns.take_header(row)) return fail(ErrorCode::input, "the file has no header");
  for (;;) {
    FLYBALL_ASSIGN(more, reader.next(row));
    if (!more) break;
    if (!row.ended) intake.summary().cut = true;
    if (!row.defect.empty()) {
      intake.set_aside(row.line, std::string(row.defect), row.text);
    } else if (columns.is_header(row)) {
      ++intake.summary().repeated_headers;
    } else if (row.cells.size() != columns.cells()) {
      intake.set_aside(row.line,
                       row.ended
                           ? fmt::format("it has {} cells where the header has {}", row.cells.size(), columns.cells())
                           : std::string("the last line is cut"),
                       row.text);
    } else {
      FLYBALL_TRY(use(row));
    }
  }
  intake.summary().bytes = reader.bytes();
  return {};
}

}  // namespace

Result<> read_events(ByteSource& bytes, const ReadOptions& options, Intake& intake) {
  enum { kTimeMs, kTime, kEvent, kRun, kValue, kStep, kDevice, kDetail, kSystem, kBenchmark };
  NamedColumns columns(
      {"time_ms", "time", "event", "run", "value", "step_or_samples", "device", "detail", "system", "benchmark"});
  FLYBALL_ASSIGN(auto stamps, StampReader::make(options));
  FLYBALL_TRY(for_each_row(bytes, options, intake, columns, [&](const CsvRow& row) -> Result<> {
    Event event;
    const char* problem = columns.has(kTimeMs) ? stamps.read(columns.cell(row, kTimeMs), StampUnit::ms, event.at)
                                               : stamps.read(columns.cell(row, kTime), StampUnit::by_size, event.at);
    event.kind = columns.cell(row, kEvent);
    event.run = columns.cell(row, kRun);
    if (event.kind.empty()) problem = "the row names no event";
    if (event.kind.size() > 200 || event.run.size() > 200) problem = "a name is longer than 200 bytes";
    if (const auto name = columns.cell(row, kDevice); problem == nullptr && !name.empty()) {
      auto device = DeviceId::parse(name);
      if (!device) {
        problem = "the device is not a name";
      } else {
        event.device = *std::move(device);
      }
    }
    if (problem != nullptr) {
      intake.set_aside(row.line, problem, row.text);
      return {};
    }
    const auto append = [&](std::string_view word) {
      if (!word.empty()) event.detail += (event.detail.empty() ? "" : " ") + std::string(word);
    };
    append(columns.cell(row, kSystem));
    append(columns.cell(row, kBenchmark));
    append(columns.cell(row, kDetail));
    double value = 0;
    double step = 0;
    const bool has_value = !columns.doubtful(row, kValue) && parse_decimal(columns.cell(row, kValue), value);
    const bool has_step = !columns.doubtful(row, kStep) && parse_decimal(columns.cell(row, kStep), step);
    event.value = has_value ? value : has_step ? step : 0;
    if (!has_value) append(columns.cell(row, kValue));
    if (has_value && has_step) append(fmt::format("step_or_samples {}", step));
    ++intake.summary().rows;
    intake.event(event);
    return {};
  }));
  stamps.report(intake);
  return {};
}

Result<> read_flyball_csv(ByteSource& bytes, const ReadOptions& options, Intake& intake) {
  enum { kTime, kDevice, kSignal, kScope, kSource, kValue, kUnit, kStatus };
  NamedColumns columns({"time", "device", "signal", "scope", "source", "value", "unit", "status"});
  static constexpr std::array kStatuses = {
      Status::ok,     Status::missing, Status::unchanged, Status::not_supported, Status::no_permission,
      Status::failed, Status::lost,    Status::stale,     Status::garbage};
  FLYBALL_ASSIGN(auto stamps, StampReader::make(options));
  std::string last_key;
  Signal signal = Signal::other;
  std::uint32_t series = 0;
  return for_each_row(bytes, options, intake, columns, [&](const CsvRow& row) -> Result<> {
    WallTime at;
    if (const char* problem = stamps.read(columns.cell(row, kTime), StampUnit::by_size, at)) {
      intake.set_aside(row.line, problem, row.text);
      return {};
    }
    std::string key;
    for (const auto column : {kDevice, kSignal, kScope, kSource}) key.append(columns.cell(row, column)).append("\n");
    if (key != last_key) {
      auto device = DeviceId::parse(columns.cell(row, kDevice));
      const auto named_signal = parse_signal(columns.cell(row, kSignal));
      const auto scope = parse_scope(columns.cell(row, kScope));
      if (!device || !named_signal || !scope) {
        const Error& error = !device ? device.error() : !named_signal ? named_signal.error() : scope.error();
        intake.set_aside(row.line, error.what, row.text);
        return {};
      }
      signal = *named_signal;
      FLYBALL_ASSIGN(series,
                     intake.series({*std::move(device), signal, *scope, std::string(columns.cell(row, kSource))}));
      last_key = std::move(key);
    }
    const auto word = columns.cell(row, kStatus);
    const auto status =
        std::find_if(kStatuses.begin(), kStatuses.end(), [&](Status s) { return to_string(s) == word; });
    if (status == kStatuses.end() || columns.doubtful(row, kStatus)) {
      intake.set_aside(row.line, fmt::format("'{}' is not a status", word.substr(0, 20)), row.text);
      return {};
    }
    ++intake.summary().rows;
    double value = 0;
    if (*status != Status::ok) {
      intake.absent(series, at, *status, row.line, row.text);
    } else if (columns.cell(row, kUnit) != unit_of(signal) || !parse_decimal(columns.cell(row, kValue), value)) {
      intake.absent(series, at, Status::garbage, row.line, row.text);
    } else {
      intake.value(series, at, value, row.line, row.text);
    }
    return {};
  });
}

}  // namespace flyball::series
