#pragma once
#include "cli/app.h"

namespace flyball::cli {

/// Every command of the program.
void add_all_commands(Registry& registry);

}  // namespace flyball::cli
