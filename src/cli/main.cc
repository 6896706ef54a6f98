#include <csignal>

#include "cli/app.h"

int main(int argc, char** argv) {
  // A reader that closed its end shows as a write that fails, with a message and an exit code.
  std::signal(SIGPIPE, SIG_IGN);
  flyball::SystemClock clock;
  return flyball::cli::run_program(argc, argv, flyball::system_filesystem(), clock);
}
