#pragma once
// Other people's telemetry, and our own, made into points. One rule for all formats: a cell that holds no value is a
// point with the reason as its status; a row that could be read in two ways, or not at all, is set aside with its line
// number; a stamp that repeats or runs backwards is kept out and counted. Nothing is guessed and nothing vanishes
// uncounted.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "base/zone.h"
#include "series/series.h"

namespace flyball::series {

struct RecordingDetails;  // recording_reader.h

enum class Format : std::uint8_t {
  detect,       ///< by content
  recording,    ///< our own .fbr, doc/format-recording.md
  flyball_csv,  ///< our own export: time,device,signal,scope,source,value,unit,status
  nvidia_smi,   ///< nvidia-smi --query-gpu=… --format=csv[,nounits]
  dcgm,         ///< dcgmi dmon
  zeus,         ///< time,0,1,… or time,gpu0,…: epoch seconds and watts per GPU index
  node_power,   ///< run,node,time_ms,ac_w,dc_w
  events,       ///< run,time_ms,event,value,…
  mllog,        ///< MLPerf log lines, :::MLLOG {…}
  prometheus,   ///< text exposition
  table,        ///< any header with a time column and columns that name a power or energy with its unit
};
std::string_view to_string(Format format);
Result<Format> parse_format(std::string_view text);

struct ReadOptions {
  Format format = Format::detect;
  std::string zone;          ///< of stamps that carry none; empty = UTC, and a warning says so
  Fold fold = Fold::refuse;  ///< what a stamp in the hour repeated in autumn means
  /// Rows that name a GPU by a bare index become device "PREFIX/gpu-N", with a warning.
  std::string index_prefix = "unnamed-host";
  DeviceId device;               ///< whose a file is that names no device; empty = "unnamed"
  Scope scope = Scope::unknown;  ///< of such a file
  /// For text without stamps (dmon, a scrape): when it begins and how far its rounds are apart.
  std::optional<WallTime> start;
  std::optional<Seconds> interval;
  std::size_t max_line_bytes = 1 << 16;
};

/// Why values of a kind could not be used, how many, and the first of them.
struct Refusal {
  static constexpr std::size_t kMostKinds = 20;
  std::string reason;
  std::uint64_t count = 0;
  std::uint64_t line = 0;
  std::string value;
};

struct ReadSummary {
  Format format = Format::detect;
  std::uint64_t bytes = 0;  ///< after decompression
  std::uint64_t rows = 0;   ///< that held data
  /// Points given to the sink, by Status.
  std::array<std::uint64_t, 9> points{};
  std::uint64_t events = 0;
  std::uint64_t quarantined = 0;      ///< rows set aside
  std::uint64_t backward_stamps = 0;  ///< points kept out: before the last one of their series
  std::uint64_t repeated_stamps = 0;  ///< points kept out: the same time again
  std::uint64_t suspect_stamps = 0;   ///< points kept out: far ahead of their neighbours
  std::uint64_t repeated_headers = 0;
  std::vector<Refusal> refusals;      ///< of values that cannot be true or read; at most kMostKinds
  bool cut = false;                   ///< the input stopped inside a line, a block or a compressed stream
  std::vector<std::string> warnings;  ///< at most 100, each once

  std::uint64_t good_points() const { return points[static_cast<std::size_t>(Status::ok)]; }
  std::uint64_t all_points() const;
};
/// "60 values from line 2 on: '-250' is below zero; …"; empty if all could be used.
std::string refusals_text(const ReadSummary& summary);

/// Reads a file, plain or compressed, whatever its size, in bounded memory. An error means that the file could not be
/// read or is in no known format; damage inside it is in the summary and in the sink's quarantine.
/// `details`, where it is given, is filled if the input is a recording.
Result<ReadSummary> read_file(const std::string& path, const ReadOptions& options, Sink& sink,
                              RecordingDetails* details = nullptr);
/// The same of bytes from anywhere. `name` stands in messages, and for formats whose file names tell the device.
Result<ReadSummary> read_bytes(std::unique_ptr<ByteSource> bytes, const std::string& name, const ReadOptions& options,
                               Sink& sink, RecordingDetails* details = nullptr);

/// Keeps all in memory.
class RecordingSink final : public Sink {
 public:
  std::uint32_t begin_series(const SeriesKey& key) override;
  void point(std::uint32_t series, const Point& point) override { recording.series[series].points.push_back(point); }
  void event(const Event& event) override { recording.events.push_back(event); }
  void quarantine(const Quarantined& row) override;

  Recording recording;
};

}  // namespace flyball::series
