#include "guard/authority.h"

namespace flyball::guard {

std::string_view to_string(WriteState state) {
  switch (state) {
    case WriteState::applied:
      return "applied";
    case WriteState::unchanged:
      return "unchanged";
    case WriteState::deferred:
      return "deferred";
    case WriteState::refused:
      return "refused";
    case WriteState::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace flyball::guard
