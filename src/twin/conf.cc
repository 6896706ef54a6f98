#include "twin/conf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/names.h"
#include "base/text.h"

namespace flyball::twin {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;
constexpr std::string_view kEnding = ".conf";

Result<std::vector<ConfEntry>> parse(std::string_view text, const std::string& path) {
  std::vector<ConfEntry> entries;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    const auto hash = line.find('#');
    const std::string_view comment = hash == std::string_view::npos ? "" : trim(line.substr(hash + 1));
    line = trim(line.substr(0, hash));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || !is_printable_ascii(line)) {
      return fail(ErrorCode::input, "the line is not 'key = value'", fmt::format("{}:{}", path, number));
    }
    entries.push_back({std::string(trim(line.substr(0, equals))), std::string(trim(line.substr(equals + 1))),
                       std::string(comment), number});
  }
  return entries;
}

bool good_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

std::string Conf::value(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const ConfEntry& e) { return e.key == key; });
  return found == entries.end() ? std::string() : found->value;
}

Result<Conf> read_conf(Filesystem& files, const std::string& folder, std::string_view kind, const std::string& name) {
  Conf conf;
  conf.path = folder + "/" + name + std::string(kEnding);
  if (!good_name(name) || !files.exists(conf.path)) {
    return fail(ErrorCode::input, fmt::format("there is no {} '{}'", kind, name.substr(0, 64)), {},
                names_in_words(name, conf_names(files, folder).value_or(std::vector<std::string>{})));
  }
  FLYBALL_ASSIGN(const std::string text, files.read(conf.path, kMostBytes));
  FLYBALL_ASSIGN(conf.entries, parse(text, conf.path));
  return conf;
}

Result<std::vector<std::string>> conf_names(Filesystem& files, const std::string& folder) {
  return names_of_files(files, folder, kEnding);
}

Result<> located(Result<> result, const std::string& path, std::size_t line) {
  if (!result) result.error().where = fmt::format("{}:{}", path, line);
  return result;
}

}  // namespace flyball::twin
