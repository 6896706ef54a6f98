#pragma once

namespace flyball::cli {

/// While one lives, SIGINT and SIGTERM are noted instead of ending the program, so that the command can stop, give
/// back and report; the second of its kind ends it at once. At most one at a time.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Time to come to an end.
  bool received() const;
};

/// While one lives, SIGHUP asks to read the configuration again instead of ending the program. At most one at a time.
class ReloadSignal {
 public:
  ReloadSignal();
  ~ReloadSignal();
  ReloadSignal(const ReloadSignal&) = delete;
  ReloadSignal& operator=(const ReloadSignal&) = delete;

  /// Once for all signals since it was asked last.
  bool take();
};

/// The signal that any StopSignal noted, or 0. The program then ends with 128 plus it, unless with an error.
int stop_signal_received();

}  // namespace flyball::cli
