#include "cli/signals.h"

#include <csignal>

namespace flyball::cli {
namespace {

volatile std::sig_atomic_t noted = 0;
struct sigaction before_interrupt {};
struct sigaction before_terminate {};

volatile std::sig_atomic_t reload = 0;
struct sigaction before_hangup {};

void note(int signal) { noted = signal; }
void note_reload(int) { reload = 1; }

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

ReloadSignal::ReloadSignal() {
  reload = 0;
  struct sigaction action {};
  action.sa_handler = note_reload;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGHUP, &action, &before_hangup);
}

ReloadSignal::~ReloadSignal() { ::sigaction(SIGHUP, &before_hangup, nullptr); }

bool ReloadSignal::take() {
  // A signal between the two lines is lost only together with one that is being answered.
  const bool asked = reload != 0;
  reload = 0;
  return asked;
}

bool StopSignal::received() const { return noted != 0; }

int stop_signal_received() { return noted; }

}  // namespace flyball::cli
