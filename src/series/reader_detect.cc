// Which format a text is, by its first lines.
#include <fmt/format.h>

#include <algorithm>

#include "base/csv.h"
#include "base/text.h"
#include "series/reader_formats.h"
#include "series/reader_table.h"

namespace flyball::series {
namespace {

bool is_metric_line(std::string_view line) {
  const auto name_end = line.find_first_of("{ ");
  if (name_end == std::string_view::npos || name_end == 0 || (line[0] >= '0' && line[0] <= '9')) return false;
  const auto name = line.substr(0, name_end);
  const bool name_ok = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
  });
  return name_ok &&
         (line[name_end] == '{' ? line.find('}') != std::string_view::npos : line.find(',') == std::string_view::npos);
}

bool has(const Header& header, std::string_view name) {
  return std::any_of(header.begin(), header.end(), [&](const std::string& cell) { return to_lower(cell) == name; });
}

Format format_of_header(const Header& header) {
  if (has(header, "device") && has(header, "signal") && has(header, "value")) return Format::flyball_csv;
  if (has(header, "event") && (has(header, "time_ms") || has(header, "time"))) return Format::events;
  const ReadOptions options;
  // What layouts warn of is said when the file is read; here nobody listens.
  RecordingSink sink;
  ReadSummary summary;
  Intake intake(sink, summary);
  for (const Format format : {Format::nvidia_smi, Format::node_power, Format::zeus, Format::table}) {
    if (layout_of(format, header, options, intake)) return format;
  }
  return Format::detect;
}

Format format_of_line(std::string_view line) {
  if (line.find(":::MLLOG") != std::string_view::npos) return Format::mllog;
  if (line.starts_with("#Entity") || line.starts_with("# Entity")) return Format::dcgm;
  if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) return Format::prometheus;
  const char separator = guess_separator(line);
  Header header;
  for (const auto cell : split(line, separator)) {
    std::string_view name = trim(cell);
    if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    header.emplace_back(name);
  }
  const Format format = format_of_header(header);
  if (format != Format::detect) return format;
  return is_metric_line(line) ? Format::prometheus : Format::detect;
}

}  // namespace

Result<Format> detect_format(std::string_view head) {
  constexpr int kLinesLookedAt = 20;
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    return fail(ErrorCode::input, "the text is UTF-16", {}, "convert it: iconv -f UTF-16 -t UTF-8");
  }
  if (trim(head).empty()) return fail(ErrorCode::input, "the file is empty");
  std::string_view rest = head;
  for (int i = 0; i < kLinesLookedAt && !rest.empty(); ++i) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const Format format = format_of_line(trim(rest.substr(0, end)));
    if (format != Format::detect) return format;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return fail(
      ErrorCode::input,
      "no known format of telemetry: neither a recording, nor a header with a time and a power or energy with its "
      "unit, nor metrics, nor log lines",
      {}, "name the format; for CSV without header, add one such as time_ms,node,power_w");
}

}  // namespace flyball::series
