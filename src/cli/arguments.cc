#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

constexpr std::uint64_t kLargestSeed = 1ULL << 53;  // beyond, a double does not hold every whole number
constexpr Seconds kLongest(10 * 8766 * 3600.0);

/// Looked at as text: a number that is too large has lost its value when it is one.
std::string wrong_seed(const std::string& text) {
  const auto number = parse_int(text);
  if (number && *number >= 0 && static_cast<std::uint64_t>(*number) <= kLargestSeed) return {};
  return fmt::format("a seed is a whole number from 0 to {}, not '{}'", kLargestSeed, text.substr(0, 40));
}

}  // namespace

CLI::Option& add_seed(CLI::App& command, std::uint64_t& seed, const std::string& text) {
  return *command.add_option("--seed", seed, text)->check(wrong_seed)->capture_default_str();
}

CLI::Option& add_seed(CLI::App& command, std::optional<std::uint64_t>& seed, const std::string& text) {
  return *command.add_option("--seed", seed, text)->check(wrong_seed);
}

std::string wrong_if_empty(const std::string& word) {
  return word.empty() ? "it is empty; give it or leave it away" : "";
}

std::string wrong_if_no_number(const std::string& word) {
  const auto number = parse_double(word);
  return number ? "" : number.error().what;
}

std::string wrong_if_not_positive(const std::string& word) {
  const auto number = parse_double(word);
  if (!number) return number.error().what;
  return *number > 0 ? "" : fmt::format("{} is not above 0", word.substr(0, 40));
}

Result<Seconds> parse_duration(const std::string& text, const std::string& option) {
  auto duration = parse_seconds(text);
  if (!duration) {
    duration.error().where = option;
    return duration;
  }
  if (*duration > Seconds(0) && *duration <= kLongest) return duration;
  return fail(ErrorCode::input, fmt::format("'{}' is not above 0 and at most {}", text, format(kLongest)), option,
              "write a time such as 30min, 6h or 7d");
}

Result<> check_report_path(const std::string& path, const std::string& option) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code unreadable;
  if (folder.empty() || std::filesystem::is_directory(folder, unreadable)) return {};
  return fail(ErrorCode::input, "there is no folder " + folder.string(), option + " " + path);
}

Result<> say_plan(Context& context, const std::string& command,
                  const std::vector<std::pair<std::string, std::string>>& rows) {
  if (context.options.json) {
    report::Json made = report::document("dry_run");
    made["command"] = command;
    made["plan"] = report::Json::array();
    for (const auto& [what, value] : rows)
      made["plan"].push_back({{"what", report::text(what)}, {"value", report::text(value)}});
    return context.out.write(report::dump(made));
  }
  report::Table table;
  table.columns = {{""}, {""}};
  for (const auto& [what, value] : rows) table.rows.push_back({what, value});
  return context.out.write(report::to_text(table));
}

}  // namespace flyball::cli
