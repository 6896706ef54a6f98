#include <csignal>

#include "cli/app.h"
#include "device/worker/serve.h"

int main(int argc, char** argv) {
  if (flyball::worker::is_worker_program(argc, argv)) return flyball::worker::run_worker_program(argc, argv);
  // A reader that closed its end shows as a write that fails, with a message and an exit code.
  std::signal(SIGPIPE, SIG_IGN);
  flyball::SystemClock clock;
  return flyball::cli::run_program(argc, argv, flyball::system_filesystem(), clock);
}
