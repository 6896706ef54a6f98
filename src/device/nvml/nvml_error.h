#pragma once
// What the library's return codes mean to an operator.

#include <string>
#include <string_view>

#include "base/result.h"
#include "core/reading.h"
#include "device/nvml/nvml_abi.h"

namespace flyball::nvml {

/// "GPU_IS_LOST", or "code 4711".
std::string return_name(Return code);

/// The status of one value whose call ended so. An absent symbol is kFunctionNotFound.
Status status_of(Return code);

/// True when the whole session ended (the driver or library went away or was re-initialised under us), so that every
/// handle is void.
bool ends_session(Return code);

/// `call` in words ("read the power limit"), `where` a UUID or empty.
Error error_of(Return code, std::string_view call, std::string where);

}  // namespace flyball::nvml
