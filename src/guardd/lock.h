#pragma once
#include <string>

#include "base/result.h"
#include "guard/descriptor.h"

namespace flyball::guardd {

/// One writer a machine: whoever holds this lock. The kernel drops it with the process, however that ends.
/// Error `refused` when another one holds it.
Result<guard::Descriptor> take_lock(const std::string& journal);

}  // namespace flyball::guardd
