#pragma once
// A command line as a person would type it.

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace flyball {

/// What `command` prints on both outputs, then "exit CODE".
inline std::string shell(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string text;
  std::array<char, 4096> block;
  for (std::size_t n; pipe != nullptr && (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
    text.append(block.data(), n);
  }
  const int status = pipe == nullptr ? -1 : ::pclose(pipe);
  return text + fmt::format("exit {}", WEXITSTATUS(status));
}

}  // namespace flyball
