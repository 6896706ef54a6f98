#include "base/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/filesystem.h"
#include "base/text.h"

namespace flyball {
namespace {

constexpr std::size_t kLargest = 4 << 20;
constexpr std::string_view kFlag = "--update-golden";

std::string first_difference(std::string_view expected, std::string_view actual) {
  const auto expected_lines = split(expected, '\n');
  const auto actual_lines = split(actual, '\n');
  const std::size_t lines = std::max(expected_lines.size(), actual_lines.size());
  const auto line_of = [](const auto& all, std::size_t i) {
    return i < all.size() ? fmt::format("\"{}\"", all[i].substr(0, 400)) : std::string("the end");
  };
  for (std::size_t i = 0; i < lines; ++i) {
    const std::string a = line_of(expected_lines, i);
    const std::string b = line_of(actual_lines, i);
    if (a != b) return fmt::format("line {}: expected {}, got {}", i + 1, a, b);
  }
  return "a line differs behind its 400th character";
}

}  // namespace

bool updating_golden() {
  const char* set = std::getenv("FLYBALL_UPDATE_GOLDEN");
  if (set != nullptr && std::string_view(set) == "1") return true;
  // The test's own argument list: gtest's main keeps flags that it does not know.
  const auto line = system_filesystem().read("/proc/self/cmdline", kLargest);
  if (!line) return false;
  const auto words = split(*line, '\0');
  return std::find(words.begin(), words.end(), kFlag) != words.end();
}

std::string golden_difference(const std::string& name, std::string_view actual) {
  const std::string path = "tests/golden/" + name;
  Filesystem& files = system_filesystem();
  if (updating_golden()) {
    auto written = files.make_folders(path.substr(0, path.rfind('/')));
    if (written) written = files.write_atomically(path, actual);
    return written ? std::string() : written.error().message();
  }
  const auto expected = files.read(path, kLargest);
  if (!expected) return expected.error().message();
  if (*expected == actual) return {};
  return fmt::format("{}: {}; if that is right, run the test with {}", path, first_difference(*expected, actual),
                     kFlag);
}

}  // namespace flyball
