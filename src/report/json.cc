#include "report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/utf8.h"

namespace flyball::report {

Json document(std::string_view name, int version) {
  Json made = Json::object();
  made["schema"] = "flyball." + std::string(name) + "/" + std::to_string(version);
  return made;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json number(const Sample<double>& value) { return value.ok() ? number(*value) : Json(nullptr); }

Json estimate(const Estimate& estimate) {
  Json made = Json::object();
  made["value"] = number(estimate.value);
  made["low"] = number(estimate.low);
  made["high"] = number(estimate.high);
  made["level"] = number(estimate.level);
  return made;
}

Json estimate(const std::optional<Estimate>& value) { return value ? estimate(*value) : Json(nullptr); }

Json time(WallTime at) { return at == WallTime() ? Json(nullptr) : Json(format_rfc3339(at)); }

Json text(std::string_view text) { return clean_utf8(text); }

std::string dump(const Json& document) { return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n'; }

std::string dump_line(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace flyball::report
