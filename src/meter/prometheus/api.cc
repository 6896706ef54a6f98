#include "meter/prometheus/api.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/decimal.h"
#include "base/text.h"
#include "meter/http.h"

namespace flyball::meter {
namespace {

using Json = nlohmann::json;

Error odd(std::string_view what) {
  return {ErrorCode::failed, fmt::format("no answer of Prometheus: {}", what), {}, "check meter.address"};
}

/// [seconds, "value"]
bool take_sample(const Json& pair, PrometheusSample& sample) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_string()) return false;
  const double seconds = pair[0].get<double>();
  if (!(std::fabs(seconds) < 9e9)) return false;
  sample.at = WallTime(std::llround(seconds * 1000) * 1'000'000);
  if (!parse_decimal(pair[1].get_ref<const std::string&>(), sample.value)) {
    sample.value = std::numeric_limits<double>::quiet_NaN();
  }
  return true;
}

Result<PrometheusSeries> take_series(const Json& one) {
  PrometheusSeries made;
  if (!one.is_object() || !one.contains("metric") || !one["metric"].is_object() || !one.contains("values") ||
      !one["values"].is_array()) {
    return fail(odd("a series without metric or values"));
  }
  for (const auto& [name, value] : one["metric"].items()) {
    if (value.is_string()) made.labels[name] = value.get<std::string>();
  }
  for (const Json& pair : one["values"]) {
    PrometheusSample sample;
    if (!take_sample(pair, sample)) return fail(odd("a sample that is no [time, \"value\"]"));
    if (!made.samples.empty() && sample.at <= made.samples.back().at) return fail(odd("samples out of order"));
    made.samples.push_back(sample);
  }
  return made;
}

}  // namespace

Result<std::vector<PrometheusSeries>> decode_matrix(std::string_view body) {
  const Json document = Json::parse(body, nullptr, false);
  if (!document.is_object()) return fail(odd("no JSON object"));
  const auto text = [&](const Json& in, const char* key) {
    return in.is_object() && in.contains(key) && in[key].is_string() ? in[key].get<std::string>() : std::string();
  };
  if (text(document, "status") != "success") {
    const std::string why = text(document, "error");
    return fail(ErrorCode::failed, "Prometheus refuses: " + (why.empty() ? "no reason given" : why.substr(0, 200)));
  }
  const Json data = document.value("data", Json());
  if (text(data, "resultType") != "matrix") return fail(odd("the result is no matrix"));
  if (!data.contains("result") || !data["result"].is_array()) return fail(odd("no result"));
  std::vector<PrometheusSeries> all;
  for (const Json& one : data["result"]) {
    FLYBALL_ASSIGN(all.emplace_back(), take_series(one));
  }
  return all;
}

std::string raw_samples_query(const std::string& selector, Seconds window, WallTime until) {
  const std::string query = fmt::format("{}[{}ms]", selector, std::llround(window.value() * 1000));
  return fmt::format("/api/v1/query?query={}&time={}", percent_encoded(query), percent_encoded(format_rfc3339(until)));
}

Result<PrometheusSeries> only_series(std::vector<PrometheusSeries> all) {
  if (all.size() == 1) return std::move(all.front());
  if (all.empty()) return fail(ErrorCode::failed, "the selector matches no series with a sample in the window");
  std::set<std::string> differ;
  for (const PrometheusSeries& one : all) {
    for (const auto& [name, value] : one.labels) {
      const auto other = all.front().labels.find(name);
      if (other == all.front().labels.end() || other->second != value) differ.insert(name);
    }
  }
  return fail(ErrorCode::input,
              fmt::format("the selector matches {} series, which differ in {}", all.size(), fmt::join(differ, ", ")),
              {}, "name one in the selector, by uuid where there is one");
}

}  // namespace flyball::meter
