#include "series/writer_csv.h"

#include <fmt/format.h>

#include <iterator>

#include "base/csv.h"
#include "base/text.h"

namespace flyball::series {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;

/// With as many decimals as the time has.
std::string exact_time(WallTime at) {
  std::string text = format_rfc3339(at);
  const std::int64_t below_ms = at.nanoseconds() % 1'000'000;
  if (below_ms <= 0) return text;  // files hold no times before 1970
  text.pop_back();
  return fmt::format("{}{:06}Z", text, below_ms);
}

}  // namespace

CsvWriter::CsvWriter(Output points, Output events) : points_(std::move(points)), events_(std::move(events)) {
  point_text_ = "time,device,signal,scope,source,value,unit,status\n";
  event_text_ = "time,run,device,event,value,detail\n";
}

std::uint32_t CsvWriter::begin_series(const SeriesKey& key) {
  columns_.push_back(fmt::format(",{},{},{},{},", csv_cell(key.device.text()), to_string(key.signal),
                                 to_string(key.scope), csv_cell(key.source)));
  units_.push_back(unit_of(key.signal));
  return static_cast<std::uint32_t>(columns_.size() - 1);
}

void CsvWriter::point(std::uint32_t series, const Point& point) {
  const std::string value = point.status == Status::ok ? format_exact(point.value) : std::string();
  fmt::format_to(std::back_inserter(point_text_), "{}{}{},{},{}\n", exact_time(point.at), columns_[series], value,
                 units_[series], to_string(point.status));
  write_full(point_text_, points_, kBufferBytes);
}

void CsvWriter::event(const Event& event) {
  fmt::format_to(std::back_inserter(event_text_), "{},{},{},{},{},{}\n", exact_time(event.at), csv_cell(event.run),
                 csv_cell(event.device.text()), csv_cell(event.kind), format_exact(event.value),
                 csv_cell(event.detail));
  write_full(event_text_, events_, kBufferBytes);
}

void CsvWriter::write_full(std::string& buffer, const Output& output, std::size_t limit) {
  if (buffer.size() < limit) return;
  if (output && state_) state_ = output(buffer);
  buffer.clear();
}

Result<> CsvWriter::finish() {
  write_full(point_text_, points_, 1);
  write_full(event_text_, events_, 1);
  return state_;
}

}  // namespace flyball::series
