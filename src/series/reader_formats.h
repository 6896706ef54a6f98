#pragma once
// One function a format; `bytes` is already decompressed. Private to the readers.

#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "series/reader_intake.h"

namespace flyball::series {

/// By the first bytes of the text. An error names the formats there are.
Result<Format> detect_format(std::string_view head);

Result<> read_table(Format format, ByteSource& bytes, const ReadOptions& options, Intake& intake);
Result<> read_flyball_csv(ByteSource& bytes, const ReadOptions& options, Intake& intake);
Result<> read_events(ByteSource& bytes, const ReadOptions& options, Intake& intake);
/// `name` tells run, node and meter: "…/ac__…__result_RUN__node_1.txt" or "result_RUN/node_1.txt".
Result<> read_mllog(ByteSource& bytes, const std::string& name, const ReadOptions& options, Intake& intake);
Result<> read_dcgm(ByteSource& bytes, const ReadOptions& options, Intake& intake);
Result<> read_prometheus(ByteSource& bytes, const ReadOptions& options, Intake& intake);

/// DCGM's words for "no value": blank, not found, not supported, not permitted, as 32- and 64-bit integers and doubles.
bool is_dcgm_blank(double value);

}  // namespace flyball::series
