#pragma once
// A rate per kWh from the command line: a number, or a CSV of time,per_kwh.

#include <string>

#include "base/filesystem.h"
#include "base/result.h"
#include "series/accounting.h"

namespace flyball::cli {

Result<series::RateSeries> read_rate(const std::string& text, const std::string& flag, Filesystem& files);

}  // namespace flyball::cli
