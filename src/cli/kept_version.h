#pragma once
// Versions that `flyball calibrate fit --keep` kept, as other commands read them.

#include <string>

#include "base/result.h"
#include "ledger/ledger.h"

namespace flyball::cli {

/// By its hash, or enough of it, in upper or lower case. Its content is what its hash says; an error else.
Result<ledger::BaselineRow> kept_version(ledger::Ledger& ledger, const std::string& hash);

}  // namespace flyball::cli
