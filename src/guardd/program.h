#pragma once
// The three things that flyball-guard does. Each returns nothing, or the error whose code the program exits with.

#include "base/result.h"
#include "core/driver.h"
#include "guard/authority.h"
#include "guardd/options.h"

namespace flyball::guardd {

/// Until SIGTERM or SIGINT; then gives back everything by rule. Error `degraded` when something could not be.
Result<> serve(const Options& options, Driver& driver, Clock& clock, Filesystem& files);
/// From the journal if no guard runs, else through the one that does.
Result<> restore(const Options& options, Driver& driver, Clock& clock, Filesystem& files);
Result<> status(const Options& options);

/// Error `degraded` naming the boards that were not given back.
Result<> judge(const std::vector<guard::RestoreOutcome>& outcomes);

/// Set by SIGTERM and SIGINT.
int signal_seen();
void install_signals();

}  // namespace flyball::guardd
