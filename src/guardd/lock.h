#pragma once
#include <string>

#include "base/lock_file.h"
#include "base/result.h"

namespace flyball::guardd {

/// One writer a machine: whoever holds this lock.
/// Error `refused` when another one holds it.
Result<LockFile> take_lock(const std::string& journal);

}  // namespace flyball::guardd
