#pragma once
// Points and events as CSV that any program reads and that reads back to the same values.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "series/series.h"

namespace flyball::series {

/// Points as "time,device,signal,scope,source,value,unit,status", events as "time,run,device,event,value,detail".
/// Times are RFC 3339 UTC with nanoseconds where there are any; numbers are the shortest that read back the same.
class CsvWriter final : public Sink {
 public:
  /// Takes text in blocks; its first error ends the writing and comes out of `finish`.
  using Output = std::function<Result<>(std::string_view)>;

  /// Without `events`, events are left out.
  explicit CsvWriter(Output points, Output events = {});
  std::uint32_t begin_series(const SeriesKey& key) override;
  void point(std::uint32_t series, const Point& point) override;
  void event(const Event& event) override;
  void quarantine(const Quarantined&) override {}
  /// Writes what is buffered.
  Result<> finish();

 private:
  void write_full(std::string& buffer, const Output& output, std::size_t limit);

  Output points_;
  Output events_;
  std::vector<std::string> columns_;  ///< ",device,signal,scope,source," of each series
  std::vector<std::string_view> units_;
  std::string point_text_;
  std::string event_text_;
  Result<> state_;
};

}  // namespace flyball::series
