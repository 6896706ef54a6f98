#include <cstdio>

#include "base/clock.h"
#include "base/filesystem.h"
#include "device/worker/serve.h"
#include "device/worker/worker_driver.h"
#include "guardd/program.h"

namespace {

flyball::Result<> run(int argc, char** argv) {
  using namespace flyball;
  FLYBALL_ASSIGN(const guardd::Options options, guardd::parse_options(argc, argv, system_filesystem()));
  if (options.done) return {};
  if (options.command == guardd::Command::status) return guardd::status(options);
  guardd::install_signals();
  SystemClock clock;
  const auto driver = worker::make_nvml_in_workers(options.nvml_library, clock);
  return options.command == guardd::Command::restore ? guardd::restore(options, *driver, clock, system_filesystem())
                                                     : guardd::serve(options, *driver, clock, system_filesystem());
}

}  // namespace

int main(int argc, char** argv) {
  if (flyball::worker::is_worker_program(argc, argv)) return flyball::worker::run_worker_program(argc, argv);
  const auto done = run(argc, argv);
  if (done) return 0;
  std::fprintf(stderr, "flyball-guard: %s\n", done.error().message().c_str());
  return done.error().exit_code();
}
