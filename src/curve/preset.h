#pragma once
// Fitted curves that come with the program: presets/curves/NAME.csv, in the format that `fit` reads, with the source of
// the numbers in its header. They hold fitted knots, never a measured file.

#include <string>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"
#include "curve/held_out.h"
#include "curve/table.h"

namespace flyball::curve {

struct Preset {
  std::string name;  ///< the file's, without .csv
  std::string gpu;
  std::string workload;
  std::string source;  ///< who measured it
  std::string licence;
  std::string method;  ///< how the knots came about
  std::string held_out;
  Curve curve;
};

/// `folder` is that of the presets (see base/presets.h).
Result<Preset> load_preset(Filesystem& files, const std::string& folder, const std::string& name);
Result<std::vector<std::string>> preset_names(Filesystem& files, const std::string& folder);

/// The text of a preset for one measured curve; knots are rounded to five digits.
Result<std::string> make_preset(const MeasuredCurve& curve, const std::string& source, const std::string& licence);

}  // namespace flyball::curve
