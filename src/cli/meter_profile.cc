#include "cli/meter_profile.h"

#include "base/names.h"
#include "base/presets.h"

namespace flyball::cli {

Result<meter::Profile> load_meter_profile(const std::string& name, Context& context) {
  std::string path = name;
  if (path.find('/') == std::string::npos && !context.files.exists(path)) {
    FLYBALL_ASSIGN(const std::string presets, presets_folder());
    const std::string folder = presets + "/meters";
    path = folder + "/" + name + ".conf";
    if (!context.files.exists(path)) {
      const auto known = names_of_files(context.files, folder, ".conf").value_or(std::vector<std::string>{});
      return fail(ErrorCode::input, "there is no file and no preset of that name", name.substr(0, 64),
                  "name a file, or a preset: " + names_in_words(name, known));
    }
  }
  FLYBALL_ASSIGN(const std::string text, read_input(context.files, path, kLargestConfig));
  auto profile = meter::parse_profile(text, path);
  if (!profile) return fail_all(profile.error());
  return *std::move(profile);
}

}  // namespace flyball::cli
