#pragma once
// One line on stderr that says how far long work is. Only on a terminal, never with -q; gone at the end.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cli/app.h"

namespace flyball::cli {

class Progress {
 public:
  Progress(const GlobalOptions& options, const Clock& clock);
  /// For tests: writes to `descriptor`, lines at most `width` columns wide.
  Progress(int descriptor, std::size_t width, const Clock& clock);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// At most ten times a second; what comes between is not shown.
  void show(std::string_view text);
  /// Before other text goes to stderr.
  void clear();

 private:
  int descriptor_;  ///< −1: nothing is shown
  std::size_t width_ = 0;
  const Clock& clock_;
  std::optional<MonoTime> last_;
  bool visible_ = false;
};

}  // namespace flyball::cli
