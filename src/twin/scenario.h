#pragma once
// A named machine with its job: presets/scenarios/NAME.conf. Lines of `key = value`; '#' begins a comment, which
// after a value is its source. Keys are `summary`, `board` (see gpu_preset), `curve` (see curve/preset.h) and
// everything that `set_parameter` takes.

#include <map>
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
  std::optional<curve::Preset> curve;          ///< measured by limit; without it `preset` of the parameters holds
  std::map<std::string, std::string> sources;  ///< of what the file sets, by dotted key

  /// A new machine at time 0. Same parameters, same machine.
  Result<Machine> build() const;
  /// "twin v100-bert (preset v100-bert-sentiment140)"
  std::string plant() const;
  /// Where the value of a key comes from: the file's comment, "--set", or the source of the default.
  std::string source(const ParameterInfo& parameter) const;
  /// All that decides what the machine does, but for the seed, in one fixed form: "flyball.scenario/1", then
  /// "key = value" in the order of list_parameters, then the points of the curve.
  std::string canonical_text() const;
  /// SHA-256 of it, by which a scenario can be frozen before anything is tuned on it.
  std::string hash() const;
};

/// `folder` is that of the presets. A bad file is an error that names its line.
Result<Scenario> load_scenario(Filesystem& files, const std::string& folder, const std::string& name);
Result<std::vector<std::string>> scenario_names(Filesystem& files, const std::string& folder);
/// Each is "key=value", as `--set` gives it. Checked when all are set: two may be right only together.
Result<> override_parameters(Scenario& scenario, const std::vector<std::string>& texts);

}  // namespace flyball::twin
