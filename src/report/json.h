#pragma once
// One way to write JSON documents. json.hpp itself is for .cc files.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/stats.h"
#include "core/reading.h"

namespace flyball::report {

using Json = nlohmann::ordered_json;

/// {"schema": "flyball.NAME/1"}: how every document begins.
Json document(std::string_view name, int version = 1);
/// null for NaN and infinities: JSON has no word for them.
Json number(double value);
Json number(const Sample<double>& value);
/// {value, low, high, level}
Json estimate(const Estimate& estimate);
Json estimate(const std::optional<Estimate>& estimate);
/// RFC 3339 UTC; null for the time that was never set.
Json time(WallTime at);
/// Any text as valid UTF-8.
Json text(std::string_view text);

/// Indented, with a newline at the end.
std::string dump(const Json& document);
/// One line, for streams (NDJSON).
std::string dump_line(const Json& document);

}  // namespace flyball::report
