#pragma once
// A named building with its jobs: presets/facility/NAME.conf. Lines of `key = value`; keys are `summary`, `schedule`
// ("default", or a type of job that has all GPUs all the time), `start` (RFC 3339), `length` and everything that
// `set_parameter` takes, with or without "facility.".

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"
#include "twin/facility.h"

namespace flyball::twin {

struct FacilityScenario {
  std::string name;
  std::string summary;
  FacilitySetup setup;                         ///< weather and schedule are empty where they are made up
  std::map<std::string, std::string> sources;  ///< of what the file sets, by dotted key

  std::string source(const ParameterInfo& parameter) const;
};

/// `folder` is that of the presets. A bad file is an error that names its line.
Result<FacilityScenario> load_facility(Filesystem& files, const std::string& folder, const std::string& name);
Result<std::vector<std::string>> facility_names(Filesystem& files, const std::string& folder);
/// `text` is "key=value", as `--set` gives it.
Result<> override_parameter(FacilityScenario& scenario, std::string_view text);

}  // namespace flyball::twin
