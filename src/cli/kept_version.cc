#include "cli/kept_version.h"

#include <fmt/format.h>

#include "base/text.h"
#include "facility/phase_library.h"

namespace flyball::cli {

Result<ledger::BaselineRow> kept_version(ledger::Ledger& ledger, const std::string& hash) {
  FLYBALL_ASSIGN(ledger::BaselineRow kept, ledger.baseline(to_lower(hash)));
  if (facility::is_sound({kept.hash, kept.parent, kept.inputs_hash, kept.reason, kept.valid_from, kept.content}))
    return kept;
  return fail(ErrorCode::failed,
              fmt::format("the entry of version {} was changed: it is not what its hash says", kept.hash),
              ledger.path(), "restore the ledger from a backup, or keep a new version (flyball calibrate fit --keep)");
}

}  // namespace flyball::cli
