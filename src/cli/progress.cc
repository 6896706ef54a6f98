#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "report/utf8.h"

namespace flyball::cli {
namespace {

constexpr Seconds kShortestPause{0.1};
constexpr std::size_t kUsualWidth = 80;

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualWidth;
}

/// Progress that cannot be shown is no reason to stop the work.
void write_out(int descriptor, std::string_view text) {
  [[maybe_unused]] const auto written = ::write(descriptor, text.data(), text.size());
}

/// The first `width` code points.
std::string_view clipped(std::string_view text, std::size_t width) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (++columns > width) return text.substr(0, i);
  }
  return text;
}

}  // namespace

Progress::Progress(const GlobalOptions& options, const Clock& clock)
    : descriptor_(!options.quiet && ::isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : -1),
      width_(terminal_width()),
      clock_(clock) {}

Progress::Progress(int descriptor, std::size_t width, const Clock& clock)
    : descriptor_(descriptor), width_(width), clock_(clock) {}

Progress::~Progress() { clear(); }

void Progress::show(std::string_view text) {
  if (descriptor_ < 0) return;
  const MonoTime now = clock_.now();
  if (last_ && now - *last_ < kShortestPause) return;
  last_ = now;
  visible_ = true;
  // One column stays free: a full line would wrap on some terminals.
  const std::string clean = report::clean_utf8(text);
  write_out(descriptor_, "\r" + std::string(clipped(clean, width_ > 0 ? width_ - 1 : 0)) + "\x1b[K");
}

void Progress::clear() {
  if (!visible_) return;
  visible_ = false;
  write_out(descriptor_, "\r\x1b[K");
}

}  // namespace flyball::cli
