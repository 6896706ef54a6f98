#include "base/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace flyball {
namespace {

constexpr std::size_t kLongest = 64;  // bounds the table of distances
constexpr std::size_t kMostShown = 50;

/// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_name(std::string_view said, const std::vector<std::string>& known) {
  std::string best;
  std::size_t nearest = std::max<std::size_t>(2, said.size() / 3) + 1;
  for (const std::string& name : known) {
    const std::size_t d = distance(said.substr(0, kLongest), std::string_view(name).substr(0, kLongest));
    if (d < nearest && d < said.size()) {
      nearest = d;
      best = name;
    }
  }
  return best;
}

std::string names_in_words(std::string_view said, const std::vector<std::string>& known) {
  if (known.empty()) return "there are none";
  const std::string near = nearest_name(said, known);
  std::string all = near.empty() ? "there are" : fmt::format("did you mean '{}'? There are", near);
  for (std::size_t i = 0; i < std::min(known.size(), kMostShown); ++i) all += (i == 0 ? " " : ", ") + known[i];
  if (known.size() > kMostShown) all += fmt::format(" and {} more", known.size() - kMostShown);
  return all;
}

Result<std::vector<std::string>> names_of_files(Filesystem& files, const std::string& folder, std::string_view ending) {
  FLYBALL_ASSIGN(const auto all, files.list(folder));
  std::vector<std::string> names;
  for (const std::string& file : all) {
    if (file.size() > ending.size() && file.ends_with(ending)) {
      names.push_back(file.substr(0, file.size() - ending.size()));
    }
  }
  return names;
}

}  // namespace flyball
