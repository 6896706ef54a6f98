#include "core/result_types.h"

namespace flyball {

std::string_view to_string(Decision decision) {
  switch (decision) {
    case Decision::yes:
      return "yes";
    case Decision::no:
      return "no";
    case Decision::not_sure:
      return "not_sure";
  }
  return "unknown";
}

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::alarm:
      return "alarm";
  }
  return "unknown";
}

}  // namespace flyball
