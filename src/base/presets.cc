#include "base/presets.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace flyball {
namespace {

/// The folder that the running program lies in, without a slash at the end; empty if the system does not tell.
std::string program_folder() {
  std::array<char, 4096> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0 || static_cast<std::size_t>(length) == path.size()) return {};
  const std::string program(path.data(), static_cast<std::size_t>(length));
  return program.substr(0, program.rfind('/'));
}

}  // namespace

Result<std::string> presets_folder() {
  if (const char* told = std::getenv("FLYBALL_PRESETS"); told != nullptr && *told != '\0') return std::string(told);
  const std::string here = program_folder();
  // build/PRESET/flyball stands two folders below the checkout.
  for (const char* way : {"/../share/flyball/presets", "/../../presets"}) {
    if (const std::string folder = here + way; ::access((folder + "/curves").c_str(), R_OK) == 0) return folder;
  }
  return fail(ErrorCode::failed, "the presets that come with the program are not found beside " + here, {},
              "install them, or name their folder in FLYBALL_PRESETS");
}

}  // namespace flyball
