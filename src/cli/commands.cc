#include "cli/commands.h"

namespace flyball::cli {

// Each is defined in the file of its name. Sorted; one line a command.
void add_analyze(Registry& registry);
void add_audit_verify(Registry& registry);
void add_calibrate_explain(Registry& registry);
void add_calibrate_fit(Registry& registry);
void add_calibrate_watch(Registry& registry);
void add_config_check(Registry& registry);
void add_doctor(Registry& registry);
void add_evaluate(Registry& registry);
void add_fit(Registry& registry);
void add_meter_commission(Registry& registry);
void add_meter_discover(Registry& registry);
void add_policy_list(Registry& registry);
void add_record(Registry& registry);
void add_replay(Registry& registry);
void add_restore(Registry& registry);
void add_run(Registry& registry);
void add_scenarios(Registry& registry);

void add_all_commands(Registry& registry) {
  add_analyze(registry);
  add_audit_verify(registry);
  add_calibrate_explain(registry);
  add_calibrate_fit(registry);
  add_calibrate_watch(registry);
  add_config_check(registry);
  add_doctor(registry);
  add_evaluate(registry);
  add_fit(registry);
  add_meter_commission(registry);
  add_meter_discover(registry);
  add_policy_list(registry);
  add_record(registry);
  add_replay(registry);
  add_restore(registry);
  add_run(registry);
  add_scenarios(registry);
}

}  // namespace flyball::cli
