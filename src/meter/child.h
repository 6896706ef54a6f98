#pragma once
// A program that answers on its standard output, with a deadline: it and all that it started are killed at it.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace flyball::meter {

struct ChildOutput {
  int status = 0;  ///< of its exit; 128 + the signal that ended it
  std::string out;
  std::string error;
};

/// `variables` ("NAME=value") are added to the environment, where LC_ALL=C is set. Output beyond 1 MiB, no such
/// program (`unsupported`) and a deadline that passes are errors; a bad exit status is not.
Result<ChildOutput> run_child(const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
                              Seconds deadline);

}  // namespace flyball::meter
