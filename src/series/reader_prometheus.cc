// Prometheus text exposition: DCGM's exporter and whatever names its unit, *_watts and *_joules_total.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/csv.h"
#include "base/text.h"
#include "series/reader_cell.h"
#include "series/reader_formats.h"

namespace flyball::series {
namespace {

struct MetricMeaning {
  Signal signal = Signal::other;
  Scale scale;
};

struct KnownMetric {
  std::string_view name;
  MetricMeaning meaning;
};

// DCGM's exporter keeps the units of DCGM's fields.
constexpr std::array kDcgmMetrics = {
    KnownMetric{"DCGM_FI_DEV_POWER_USAGE", {Signal::power_average, {}}},
    KnownMetric{"DCGM_FI_DEV_POWER_USAGE_INSTANT", {Signal::power_instant, {}}},
    KnownMetric{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", {Signal::energy, {1, 1e3}}},
    KnownMetric{"DCGM_FI_DEV_POWER_MGMT_LIMIT", {Signal::limit_requested, {}}},
    KnownMetric{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", {Signal::limit_enforced, {}}},
    KnownMetric{"DCGM_FI_DEV_GPU_TEMP", {Signal::temperature, {}}},
    KnownMetric{"DCGM_FI_DEV_MEMORY_TEMP", {Signal::memory_temperature, {}}},
    KnownMetric{"DCGM_FI_DEV_GPU_UTIL", {Signal::utilisation, {1, 100}}},
    KnownMetric{"DCGM_FI_DEV_SM_CLOCK", {Signal::sm_clock, {1e6, 1}}},
    KnownMetric{"DCGM_FI_DEV_MEM_CLOCK", {Signal::memory_clock, {1e6, 1}}},
    KnownMetric{"DCGM_FI_DEV_FAN_SPEED", {Signal::fan, {1, 100}}},
};

/// By the base units that Prometheus' naming asks for. Bounds and defaults of a limit are no measurement.
std::optional<MetricMeaning> meaning_of(std::string_view name) {
  for (const auto& known : kDcgmMetrics) {
    if (known.name == name) return known.meaning;
  }
  const auto holds = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (name.ends_with("_joules_total")) return MetricMeaning{Signal::energy, {}};
  if (!name.ends_with("_watts")) return std::nullopt;
  if (holds("max") || holds("min") || holds("default") || holds("budget") || holds("capacity") || holds("rated"))
    return std::nullopt;
  if (holds("limit") || holds("_cap_"))
    return MetricMeaning{holds("enforced") ? Signal::limit_enforced : Signal::limit_requested, {}};
  return MetricMeaning{holds("instant") ? Signal::power_instant : Signal::power_average, {}};
}

struct Labels {
  std::string uuid;
  std::string index;
  std::string place;  ///< node, host or instance, and the object on it
  bool part = false;  ///< a MIG instance: what it shows is the whole GPU's
};

/// A label's value, unescaped, or nothing if it does not end. `at` stands behind the opening quote and then behind the
/// closing one.
bool take_quoted(std::string_view text, std::size_t& at, std::string& value) {
  value.clear();
  for (; at < text.size(); ++at) {
    if (text[at] == '"') return ++at, true;
    if (text[at] == '\\' && at + 1 < text.size()) {
      ++at;
      value += text[at] == 'n' ? '\n' : text[at];
    } else {
      value += text[at];
    }
  }
  return false;
}

/// Reads "{…}" at `at`, which then stands behind it.
bool take_labels(std::string_view text, std::size_t& at, Labels& labels) {
  std::string value;
  ++at;
  for (;;) {
    while (at < text.size() && (text[at] == ' ' || text[at] == ',')) ++at;
    if (at < text.size() && text[at] == '}') return ++at, true;
    const auto equals = text.find('=', at);
    if (equals == std::string_view::npos || equals + 1 >= text.size() || text[equals + 1] != '"') return false;
    const std::string name = to_lower(trim(text.substr(at, equals - at)));
    at = equals + 2;
    if (!take_quoted(text, at, value)) return false;
    if (name == "uuid" || name == "gpu_uuid") labels.uuid = value;
    if (name == "gpu" || name == "index" || name == "gpu_index" || name == "minor_number") labels.index = value;
    if ((name == "gpu_i_id" || name == "gpu_i_profile") && !value.empty()) labels.part = true;
    if (name == "node" || name == "host" || name == "instance" || name == "chassis" || name == "name" ||
        name == "sensor" || name == "zone" || name == "path" || name == "outlet") {
      labels.place += (labels.place.empty() ? "" : "/") + value;
    }
  }
}

class PrometheusReader {
 public:
  PrometheusReader(const ReadOptions& options, Intake& intake) : options_(options), intake_(intake) {}

  Result<> line(const Line& line) {
    const std::string_view text = trim(line.text);
    if (text.empty() || text.front() == '#') return {};
    if (!line.ended) {
      intake_.summary().cut = true;
      intake_.set_aside(line.number, "the last line is cut", text);
      return {};
    }
    const std::size_t name_end = std::min(text.find_first_of("{ \t"), text.size());
    const auto meaning = meaning_of(text.substr(0, name_end));
    if (!meaning) return {};
    std::size_t at = name_end;
    Labels labels;
    if (at < text.size() && text[at] == '{' && !take_labels(text, at, labels)) {
      intake_.set_aside(line.number, "its labels do not end", text);
      return {};
    }
    return sample(text, text.substr(0, name_end), *meaning, labels, trim(text.substr(at)), line);
  }

 private:
  Result<DeviceId> device_of(const Labels& labels, Scope& scope) {
    scope = Scope::board;
    if (!labels.uuid.empty()) return DeviceId::parse(labels.uuid);
    if (!labels.index.empty()) {
      intake_.warn(
          fmt::format("GPUs are named by index only, which changes with order and reboot; they are called {}/gpu-N",
                      options_.index_prefix));
      return DeviceId::parse(fmt::format("{}/gpu-{}", options_.index_prefix, labels.index));
    }
    scope = options_.scope;
    if (labels.place.empty()) return options_.device.empty() ? DeviceId::of("unnamed") : options_.device;
    std::string name = labels.place;
    std::replace(name.begin(), name.end(), ' ', '_');
    return DeviceId::parse(name);
  }

  Result<> sample(std::string_view text, std::string_view name, const MetricMeaning& meaning, const Labels& labels,
                  std::string_view rest, const Line& line) {
    const auto gap = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view number = rest.substr(0, gap);
    const std::string_view stamp = trim(rest.substr(gap));
    Scope scope = Scope::unknown;
    auto device = device_of(labels, scope);
    if (!device) {
      intake_.set_aside(line.number, device.error().what, text);
      return {};
    }
    FLYBALL_ASSIGN(const auto series,
                   intake_.series({*std::move(device), meaning.signal, scope, fmt::format("prometheus {}", name)}));
    WallTime at;
    FLYBALL_ASSIGN(const char* const problem, time_of(stamp, series, at));
    if (problem != nullptr) {
      intake_.set_aside(line.number, problem, text);
      return {};
    }
    if (labels.part && at == last_part_[series]) return {};  // the whole GPU again, through another of its instances
    if (labels.part) last_part_[series] = at;
    double value = 0;
    ++intake_.summary().rows;
    if (parse_decimal(number, value) && !is_dcgm_blank(value)) {
      intake_.value(series, at, meaning.scale(value), line.number, text);
    } else {
      const bool garbage = !parse_decimal(number, value) && to_lower(number) != "nan";
      intake_.absent(series, at, garbage ? Status::garbage : Status::missing, line.number, text);
    }
    return {};
  }

  /// Milliseconds behind the value; without, the stated time of the scrape, and one interval later for each time that
  /// the series comes again.
  Result<const char*> time_of(std::string_view stamp, std::uint32_t series, WallTime& at) {
    constexpr std::int64_t kYear2000Ms = 946'684'800'000;
    constexpr std::int64_t kYear2100Ms = 4'102'444'800'000;
    std::int64_t ms = 0;
    if (!stamp.empty()) {
      if (!parse_whole(stamp, ms)) return "the stamp cannot be read";
      if (ms < kYear2000Ms || ms >= kYear2100Ms) return "the stamp is not between 2000 and 2100";
      at = WallTime(ms * 1'000'000);
      return nullptr;
    }
    if (!options_.start) {
      return fail(ErrorCode::input, "the metrics carry no times", {}, "state when they were scraped");
    }
    at = *options_.start;
    if (options_.interval) at = at + *options_.interval * static_cast<double>(scrapes_[series]++);
    return nullptr;
  }

  const ReadOptions& options_;
  Intake& intake_;
  std::unordered_map<std::uint32_t, std::uint64_t> scrapes_;
  std::unordered_map<std::uint32_t, WallTime> last_part_;
};

}  // namespace

Result<> read_prometheus(ByteSource& bytes, const ReadOptions& options, Intake& intake) {
  PrometheusReader reader(options, intake);
  LineReader lines(bytes, options.max_line_bytes);
  Line line;
  for (;;) {
    FLYBALL_ASSIGN(const bool more, lines.next(line));
    if (!more) break;
    if (!line.defect.empty()) {
      intake.set_aside(line.number, std::string(line.defect), line.text);
    } else {
      FLYBALL_TRY(reader.line(line));
    }
  }
  intake.summary().bytes = lines.bytes();
  return {};
}

}  // namespace flyball::series
