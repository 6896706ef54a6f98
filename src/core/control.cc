#include "core/control.h"

#include <array>

namespace flyball {

std::string_view to_string(Lever lever) {
  switch (lever) {
    case Lever::power_limit:
      return "power_limit";
    case Lever::locked_clocks:
      return "locked_clocks";
    case Lever::generation_concurrency:
      return "generation_concurrency";
    case Lever::group_size:
      return "group_size";
    case Lever::completion_length:
      return "completion_length";
    case Lever::pause:
      return "pause";
  }
  return "unknown";
}

Result<Lever> parse_lever(std::string_view text) {
  static constexpr std::array all = {Lever::power_limit, Lever::locked_clocks,     Lever::generation_concurrency,
                                     Lever::group_size,  Lever::completion_length, Lever::pause};
  for (const Lever lever : all) {
    if (to_string(lever) == text) return lever;
  }
  return fail(ErrorCode::input, "'" + std::string(text.substr(0, 40)) + "' is not a lever");
}

std::string_view to_string(LeaseKind kind) { return kind == LeaseKind::saving ? "saving" : "budget"; }

std::string_view to_string(Authority authority) {
  switch (authority) {
    case Authority::job:
      return "job";
    case Authority::fleet:
      return "fleet";
    case Authority::site:
      return "site";
  }
  return "unknown";
}

}  // namespace flyball
