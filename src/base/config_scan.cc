#include "base/config_scan.h"

#include <fmt/format.h>

#include "base/text.h"

namespace flyball {
namespace {

constexpr std::size_t kLargestFile = 1 << 20;
constexpr std::size_t kLongestLine = 4096;
constexpr int kDeepest = 8;

/// Follows one line through strings and comments; nesting of brackets goes on over lines.
class LineScanner {
 public:
  bool in_brackets() const { return depth_ > 0; }
  /// Empty, or what is wrong with the line.
  std::string scan(std::string_view line) {
    line_ = line;
    dots_ = 0;
    in_value_ = depth_ > 0;
    const bool is_header = !in_value_ && trim(line).starts_with('[');
    for (at_ = 0; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == '#') break;
      if (c == '"' || c == '\'') {
        if (const char* fault = skip_string(c); *fault != '\0') return fault;
      } else if (c == '[' || c == '{') {
        if (++depth_ > kDeepest) return fmt::format("is nested deeper than {} levels", kDeepest);
      } else if (c == ']' || c == '}') {
        if (depth_ > 0) --depth_;
      } else if (const char* fault = count_key_part(c); *fault != '\0') {
        return fault;
      }
    }
    if (is_header) depth_ = 0;  // a header ends with its line
    return {};
  }

 private:
  const char* skip_string(char quote) {
    if (line_.substr(at_, 3) == std::string(3, quote)) return "begins a string over several lines";
    for (++at_; at_ < line_.size() && line_[at_] != quote; ++at_) {
      if (quote == '"' && line_[at_] == '\\') ++at_;
    }
    return at_ < line_.size() ? "" : "has a string that does not end";
  }

  const char* count_key_part(char c) {
    if (c == '=') in_value_ = true;
    if (c == ',') dots_ = 0;  // in an inline table the next key begins
    if (c == '.' && ++dots_ >= kDeepest) return "has a key of more than 8 parts";
    return "";
  }

  std::string_view line_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int dots_ = 0;
  bool in_value_ = false;
};

std::string fault_of_text(std::string_view line) {
  if (line.size() > kLongestLine) return fmt::format("is longer than {} characters", kLongestLine);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    if (c >= 0x20 && c < 0x7F) continue;
    if (c == '\t' || (c == '\r' && i + 1 == line.size())) continue;
    return fmt::format("holds the byte 0x{:02X} at column {}; only printable ASCII is taken", c, i + 1);
  }
  return {};
}

}  // namespace

std::vector<Error> scan_config(std::string_view text, const std::string& name, std::size_t most) {
  std::vector<Error> faults;
  if (text.size() > kLargestFile) {
    faults.push_back({ErrorCode::input, fmt::format("is larger than {} bytes", kLargestFile), name, {}});
    return faults;
  }
  LineScanner scanner;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    std::string fault = fault_of_text(line);
    if (fault.empty()) fault = scanner.scan(line);
    if (fault.empty()) continue;
    faults.push_back({ErrorCode::input, "the line " + fault, fmt::format("{}:{}", name, number), {}});
    if (faults.size() == most) break;
  }
  return faults;
}

bool begins_in_brackets(std::string_view text, std::size_t line) {
  LineScanner scanner;
  std::size_t number = 0;
  for (const std::string_view each : split(text, '\n')) {
    if (++number >= line) break;
    scanner.scan(each);
  }
  return scanner.in_brackets();
}

}  // namespace flyball
