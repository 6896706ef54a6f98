#include "series/reader.h"

#include <fmt/format.h>

#include "series/reader_formats.h"
#include "series/reader_intake.h"
#include "series/reader_stamp.h"
#include "series/reader_table.h"
#include "series/recording_reader.h"

namespace flyball::series {
namespace {

constexpr std::array kFormatNames = {std::pair{Format::detect, "detect"},
                                     std::pair{Format::recording, "recording"},
                                     std::pair{Format::flyball_csv, "flyball-csv"},
                                     std::pair{Format::nvidia_smi, "nvidia-smi"},
                                     std::pair{Format::dcgm, "dcgm"},
                                     std::pair{Format::zeus, "zeus"},
                                     std::pair{Format::node_power, "node-power"},
                                     std::pair{Format::events, "events"},
                                     std::pair{Format::mllog, "mllog"},
                                     std::pair{Format::prometheus, "prometheus"},
                                     std::pair{Format::table, "table"}};

/// Reads ahead until the head is full or the input ends.
Result<std::string> read_head(ByteSource& bytes) {
  constexpr std::size_t kHeadBytes = 1 << 14;
  std::string head(kHeadBytes, '\0');
  std::size_t have = 0;
  while (have < head.size()) {
    FLYBALL_ASSIGN(const std::size_t got, bytes.read(head.data() + have, head.size() - have));
    if (got == 0) break;
    have += got;
  }
  head.resize(have);
  return head;
}

Result<> read_format(Format format, ByteSource& bytes, const std::string& name, const ReadOptions& options,
                     Intake& intake) {
  switch (format) {
    case Format::nvidia_smi:
    case Format::zeus:
    case Format::node_power:
    case Format::table:
      return read_table(format, bytes, options, intake);
    case Format::flyball_csv:
      return read_flyball_csv(bytes, options, intake);
    case Format::events:
      return read_events(bytes, options, intake);
    case Format::mllog:
      return read_mllog(bytes, name, options, intake);
    case Format::dcgm:
      return read_dcgm(bytes, options, intake);
    case Format::prometheus:
      return read_prometheus(bytes, options, intake);
    case Format::recording:
    case Format::detect:
      break;
  }
  return fail(ErrorCode::input, "the format is not known");
}

}  // namespace

std::string_view to_string(Format format) {
  for (const auto& [known, name] : kFormatNames) {
    if (known == format) return name;
  }
  return "unknown";
}

Result<Format> parse_format(std::string_view text) {
  std::string names;
  for (const auto& [format, name] : kFormatNames) {
    if (text == name) return format;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return fail(ErrorCode::input, fmt::format("'{}' is not a format of telemetry", text.substr(0, 40)), {},
              fmt::format("the formats are {}", names));
}

Result<> read_table(Format format, ByteSource& bytes, const ReadOptions& options, Intake& intake) {
  FLYBALL_ASSIGN(auto stamps, StampReader::make(options));
  return TableReader(format, options, intake, std::move(stamps)).read(bytes);
}

Result<ReadSummary> read_bytes(std::unique_ptr<ByteSource> bytes, const std::string& name, const ReadOptions& options,
                               Sink& sink, RecordingDetails* details) {
  const auto named = [&](Error error) {
    if (error.where.empty()) error.where = name;
    return fail(std::move(error));
  };
  ReadSummary summary;
  auto head = read_head(*bytes);
  if (!head) return named(std::move(head.error()));
  if (head->empty() && !bytes->damage().empty()) {
    return fail(ErrorCode::input, fmt::format("nothing of it can be read: {}", bytes->damage()), name,
                "fetch it again, or read what was compressed");
  }
  Format format = options.format;
  if (format == Format::detect) {
    const auto found = detect_format(*head);
    if (!found) return named(found.error());
    format = *found;
  }
  summary.format = format;
  bytes = bytes_with_head(*std::move(head), std::move(bytes));
  if (format == Format::recording) {
    RecordingDetails unwanted;
    return read_recording(*bytes, name, sink, details != nullptr ? *details : unwanted);
  }
  Intake intake(sink, summary);
  const auto done = read_format(format, *bytes, name, options, intake);
  if (!done) return named(done.error());
  if (const std::string damage = bytes->damage(); !damage.empty()) {
    summary.cut = true;
    intake.warn(fmt::format("{} behind {} bytes of content, {} rows; what lies behind is lost", damage, summary.bytes,
                            summary.rows));
  }
  if (summary.cut) intake.warn("the input stops inside its last line; what may be cut of it was not used");
  return summary;
}

Result<ReadSummary> read_file(const std::string& path, const ReadOptions& options, Sink& sink,
                              RecordingDetails* details) {
  FLYBALL_ASSIGN(auto bytes, open_bytes(path));
  return read_bytes(std::move(bytes), path, options, sink, details);
}

}  // namespace flyball::series
