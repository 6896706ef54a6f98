#include "cli/meter_profile.h"

#include "base/presets.h"

namespace flyball::cli {

Result<meter::Profile> load_meter_profile(const std::string& name, Context& context) {
  std::string path = name;
  if (path.find('/') == std::string::npos && !context.files.exists(path)) {
    FLYBALL_ASSIGN(const std::string presets, presets_folder());
    path = presets + "/meters/" + name + ".conf";
  }
  FLYBALL_ASSIGN(const std::string text, read_input(context.files, path, kLargestConfig));
  auto profile = meter::parse_profile(text, path);
  if (!profile) return fail_all(profile.error());
  return *std::move(profile);
}

}  // namespace flyball::cli
