#include "cli/signals.h"

#include <csignal>

namespace flyball::cli {
namespace {

volatile std::sig_atomic_t noted = 0;
struct sigaction before_interrupt {};
struct sigaction before_terminate {};

void note(int signal) { noted = signal; }

}  // namespace

StopSignal::StopSignal() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one finds the default: the end
  ::sigaction(SIGINT, &action, &before_interrupt);
  ::sigaction(SIGTERM, &action, &before_terminate);
}

StopSignal::~StopSignal() {
  ::sigaction(SIGINT, &before_interrupt, nullptr);
  ::sigaction(SIGTERM, &before_terminate, nullptr);
}

bool StopSignal::received() const { return noted != 0; }

int stop_signal_received() { return noted; }

}  // namespace flyball::cli
