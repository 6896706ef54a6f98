#include "cli/commands.h"

namespace flyball::cli {

// Each is defined in the file of its name. Sorted; one line a command.
void add_analyze(Registry& registry);
void add_config_check(Registry& registry);
void add_fit(Registry& registry);

void add_all_commands(Registry& registry) {
  add_analyze(registry);
  add_config_check(registry);
  add_fit(registry);
}

}  // namespace flyball::cli
