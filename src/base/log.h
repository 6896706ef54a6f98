#pragma once
// One logger, to stderr: "2026-12-01T13:54:05.250Z warning guard: text". Results go to stdout and never through here.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace flyball::log {

enum class Level { debug, info, warning, error, off };

void set_level(Level level);
bool enabled(Level level);
void write(Level level, std::string_view room, std::string_view text);

template <class... Args>
void debug(std::string_view room, fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::debug)) write(Level::debug, room, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void info(std::string_view room, fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, room, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void warning(std::string_view room, fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::warning)) write(Level::warning, room, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(std::string_view room, fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::error)) write(Level::error, room, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace flyball::log
