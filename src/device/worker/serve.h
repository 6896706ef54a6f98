#pragma once
// The inside of a worker process: a driver of its own, one request at a time, until its owner is gone.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "core/driver.h"

namespace flyball::worker {

using DriverFactory = std::function<std::unique_ptr<Driver>()>;

/// The descriptor on which an executed worker finds its owner.
constexpr int kWorkerDescriptor = 3;

/// Ties this process to its owner and away from the terminal: killed when `parent` (or the thread that made us) ends,
/// own session, deaf to the signals that ask the owner to stop, because the owner still needs us to restore limits.
/// An error means that the owner is gone already.
Result<> become_worker(pid_t parent);

/// Opens the driver, says hello, answers until the owner closes. The exit code: 0 after a close, 1 after an error.
int serve(int descriptor, std::uint64_t generation, const DriverFactory& make_driver);

/// The hidden sub-program of every executable that uses workers: `PROGRAM worker PARENT GENERATION nvml LIBRARY
/// BOARDS`.
/// True when the command line asks for it; the program then returns run_worker_program()'s value and does nothing else.
bool is_worker_program(int argc, char** argv);
/// Whether this program asked is_worker_program(), and so can be its own worker.
bool can_be_worker_program();
int run_worker_program(int argc, char** argv);

}  // namespace flyball::worker
