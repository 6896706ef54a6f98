#pragma once
// Arguments that several commands take, checked in one way, and what --dry-run says in place of doing it.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cli/app.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace flyball::cli {

/// --seed: a whole number that recordings and JSON hold exactly, at most 2^53.
CLI::Option& add_seed(CLI::App& command, std::uint64_t& seed, const std::string& text);
CLI::Option& add_seed(CLI::App& command, std::optional<std::uint64_t>& seed, const std::string& text);

/// A check for options: an empty word is a variable that a script did not set, and not the wish for nothing.
std::string wrong_if_empty(const std::string& word);

/// Checks for options that are bare numbers. "nan" and "inf" are none.
std::string wrong_if_no_number(const std::string& word);
std::string wrong_if_not_positive(const std::string& word);

/// A length of time: above 0, at most ten years. Errors name the option.
Result<Seconds> parse_duration(const std::string& text, const std::string& option = "--duration");

/// Where a page or the like is to be written, before long work is done for it. Empty: none is.
Result<> check_report_path(const std::string& path, const std::string& option = "--report");

/// A table, or with --json a document flyball.dry_run/1 of the same rows.
Result<> say_plan(Context& context, const std::string& command,
                  const std::vector<std::pair<std::string, std::string>>& rows);

}  // namespace flyball::cli
