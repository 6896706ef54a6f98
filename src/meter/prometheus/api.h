#pragma once
// Answers of Prometheus' HTTP API, and the questions for them. Pure.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace flyball::meter {

struct PrometheusSample {
  WallTime at;       ///< of the scrape or the exporter's own stamp, in whole milliseconds
  double value = 0;  ///< NaN where it is one, or infinite
};

struct PrometheusSeries {
  std::map<std::string, std::string> labels;
  std::vector<PrometheusSample> samples;  ///< in rising time
};

/// A matrix of raw samples, as a range selector gives it. A vector is refused: its stamps are those of the question,
/// not of the measurement.
Result<std::vector<PrometheusSeries>> decode_matrix(std::string_view body);

/// "/api/v1/query?…": the raw samples of the `window` that ends at `until`.
std::string raw_samples_query(const std::string& selector, Seconds window, WallTime until);

/// The only series, or why there is not exactly one, with the labels in which several differ.
Result<PrometheusSeries> only_series(std::vector<PrometheusSeries> all);

}  // namespace flyball::meter
