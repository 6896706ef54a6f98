#pragma once
// A named machine with its job: presets/scenarios/NAME.conf. Lines of `key = value`; '#' begins a comment. Keys are
// `summary`, `board` (see gpu_preset), `curve` (see curve/preset.h) and everything that `set_parameter` takes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"
#include "curve/preset.h"
#include "twin/machine.h"

namespace flyball::twin {

struct Scenario {
  std::string name;
  std::string summary;
  MachineParameters parameters;
  std::optional<curve::Preset> curve;  ///< measured; without it the parametric model holds

  /// A new machine at time 0. Same parameters, same machine.
  Result<Machine> build() const;
  /// "twin v100-bert (preset v100-bert-sentiment140)"
  std::string plant() const;
};

/// `folder` is that of the presets. A bad file is an error that names its line.
Result<Scenario> load_scenario(Filesystem& files, const std::string& folder, const std::string& name);
Result<std::vector<std::string>> scenario_names(Filesystem& files, const std::string& folder);
/// `text` is "key=value", as `--set` gives it.
Result<> override_parameter(Scenario& scenario, std::string_view text);

}  // namespace flyball::twin
