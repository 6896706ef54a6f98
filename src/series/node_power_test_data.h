#pragma once
// For tests only: the measured node power and events of the shared data, read in the plainest way.

#include <zlib.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "base/text.h"
#include "series/samples.h"
#include "series/series.h"

namespace flyball::series::test {

struct Run {
  std::map<std::string, std::vector<Point>> ac, dc;  ///< by node
  std::vector<Event> events;

  WallTime event(const std::string& kind) const {
    for (const Event& e : events)
      if (e.kind == kind) return e.at;
    return {};
  }
  Interval run() const { return {event("run_start"), event("run_stop")}; }
  std::vector<Interval> evaluations() const {
    std::vector<Interval> out;
    for (const Event& e : events) {
      if (e.kind == "eval_start") out.push_back({e.at, e.at});
      if (e.kind == "eval_stop" && !out.empty()) out.back().stop = e.at;
    }
    return out;
  }
};

inline std::string node_power_folder() {
  const std::string shared = shared_data_folder();
  return shared.empty() ? "" : shared + "/node_power";
}

inline std::vector<std::string> gz_lines(const std::string& path) {
  std::string text;
  if (gzFile file = gzopen(path.c_str(), "rb")) {
    char buffer[1 << 16];
    for (int n = 0; (n = gzread(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
    gzclose(file);
  }
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n'))
    if (!line.empty()) lines.emplace_back(line);
  return lines;
}

inline WallTime from_ms(std::string_view text) { return WallTime(parse_int(text).value_or(0) * 1'000'000); }

/// "64x_gpt3", "64x_llama2_70b_lora" or "1x_llama2_70b_lora"; empty when the data are not there.
inline std::map<std::string, Run> node_power(const std::string& name) {
  std::map<std::string, Run> runs;
  const std::string folder = node_power_folder();
  if (folder.empty()) return runs;
  const auto lines = gz_lines(folder + "/power_" + name + ".csv.gz");
  const auto point = [](WallTime at, std::string_view cell) {
    const auto value = parse_double(cell);
    return Point{at, value.value_or(0), value ? Status::ok : Status::missing};
  };
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto cells = split(lines[i], ',');
    Run& run = runs[std::string(cells[0])];
    const WallTime at = from_ms(cells[2]);
    run.ac[std::string(cells[1])].push_back(point(at, cells[3]));
    run.dc[std::string(cells[1])].push_back(point(at, cells[4]));
  }
  const auto events = gz_lines(folder + "/events.csv.gz");
  for (std::size_t i = 1; i < events.size(); ++i) {
    const auto cells = split(events[i], ',');
    const auto run = runs.find(std::string(cells[2]));
    if (run != runs.end()) run->second.events.push_back({from_ms(cells[3]), std::string(cells[4]), {}, "", 0, ""});
  }
  return runs;
}

}  // namespace flyball::series::test
