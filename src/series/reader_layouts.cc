// What the columns of each tabular format are.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "series/reader_table.h"

namespace flyball::series {
namespace {

struct NvidiaColumn {
  std::string_view name;
  Signal signal;
  Scope scope;
  std::string_view unit;  ///< nvidia-smi's own, where the header does not say
};

// The names of `nvidia-smi --help-query-gpu`. power.draw is a mean over a second from Ampere on (but not on the A100).
constexpr std::array kNvidiaColumns = {
    NvidiaColumn{"power.draw", Signal::power_average, Scope::board, "W"},
    NvidiaColumn{"power.draw.average", Signal::power_average, Scope::board, "W"},
    NvidiaColumn{"power.draw.instant", Signal::power_instant, Scope::board, "W"},
    NvidiaColumn{"module.power.draw.average", Signal::power_average, Scope::module, "W"},
    NvidiaColumn{"module.power.draw.instant", Signal::power_instant, Scope::module, "W"},
    NvidiaColumn{"enforced.power.limit", Signal::limit_enforced, Scope::board, "W"},
    NvidiaColumn{"power.limit", Signal::limit_requested, Scope::board, "W"},
    NvidiaColumn{"utilization.gpu", Signal::utilisation, Scope::board, "%"},
    NvidiaColumn{"temperature.gpu", Signal::temperature, Scope::board, "C"},
    NvidiaColumn{"temperature.memory", Signal::memory_temperature, Scope::board, "C"},
    NvidiaColumn{"clocks.sm", Signal::sm_clock, Scope::board, "MHz"},
    NvidiaColumn{"clocks.current.sm", Signal::sm_clock, Scope::board, "MHz"},
    NvidiaColumn{"clocks.mem", Signal::memory_clock, Scope::board, "MHz"},
    NvidiaColumn{"clocks.current.memory", Signal::memory_clock, Scope::board, "MHz"},
    NvidiaColumn{"fan.speed", Signal::fan, Scope::board, "%"},
    NvidiaColumn{"clocks_throttle_reasons.active", Signal::throttle, Scope::board, ""},
    NvidiaColumn{"clocks_event_reasons.active", Signal::throttle, Scope::board, ""},
};

/// "power.draw [W]" → "power.draw" and "W".
void split_unit(std::string_view name, std::string_view& base, std::string_view& unit) {
  base = name;
  unit = {};
  for (const auto& [open, close] : {std::pair{'[', ']'}, std::pair{'(', ')'}}) {
    const auto from = name.find(open);
    if (from == std::string_view::npos || !name.ends_with(close)) continue;
    base = trim(name.substr(0, from));
    unit = trim(name.substr(from + 1, name.size() - from - 2));
  }
}

bool is_index_name(std::string_view name) {
  if (name.starts_with("gpu")) name.remove_prefix(3);
  if (name.starts_with("_")) name.remove_prefix(1);
  return !name.empty() && name.size() <= 4 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool add_value(Layout& layout, ValueColumn column) {
  for (const auto& other : layout.values) {
    if (other.key == column.key) return false;
  }
  layout.values.push_back(std::move(column));
  return true;
}

/// The column of the best name in `names`, which stand in order of preference.
std::optional<std::size_t> find_column(const Header& header, std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    const auto found =
        std::find_if(header.begin(), header.end(), [&](const std::string& cell) { return to_lower(cell) == name; });
    if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  }
  return std::nullopt;
}

std::optional<std::size_t> find_time(const Header& header, StampUnit& unit) {
  static constexpr std::array kNames = {
      "time",         "timestamp",   "time_ms",      "time_s",       "time_us",  "time_ns",   "datetime",  "date_time",
      "ts",           "ts_ms",       "epoch",        "epoch_s",      "epoch_ms", "unix_time", "at",        "wall_time",
      "timestamp_ms", "timestamp_s", "timestamp_us", "timestamp_ns", "time [s]", "time (s)",  "time [ms]", "time (ms)"};
  for (std::size_t i = 0; i < header.size(); ++i) {
    const std::string name = to_lower(header[i]);
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) continue;
    unit = stamp_unit_of(name);
    return i;
  }
  return std::nullopt;
}

/// "rack_power_kw" → unit "kW" and base "rack_power". Units that need capitals to be told apart stay unknown.
std::string_view unit_of_suffix(std::string_view lower_name, std::string_view& base) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kSuffixes = {{{"_w", "W"},
                                                                                               {"_watt", "W"},
                                                                                               {"_watts", "W"},
                                                                                               {"_kw", "kW"},
                                                                                               {"_milliwatts", "mW"},
                                                                                               {"_megawatts", "MW"},
                                                                                               {"_j", "J"},
                                                                                               {"_joule", "J"},
                                                                                               {"_joules", "J"},
                                                                                               {"_joules_total", "J"},
                                                                                               {"_kj", "kJ"},
                                                                                               {"_wh", "Wh"},
                                                                                               {"_kwh", "kWh"},
                                                                                               {"_millijoules", "mJ"}}};
  for (const auto& [suffix, unit] : kSuffixes) {
    if (!lower_name.ends_with(suffix) || lower_name.size() == suffix.size()) continue;
    base = lower_name.substr(0, lower_name.size() - suffix.size());
    return unit;
  }
  return {};
}

Scope scope_of_name(std::string_view name, Scope otherwise) {
  static constexpr std::array<std::pair<std::string_view, Scope>, 9> kNames = {{{"ac", Scope::node_ac},
                                                                                {"dc", Scope::node_dc},
                                                                                {"gpu", Scope::board},
                                                                                {"board", Scope::board},
                                                                                {"rack", Scope::rack},
                                                                                {"pdu", Scope::pdu},
                                                                                {"ups", Scope::ups},
                                                                                {"feed", Scope::feed},
                                                                                {"facility", Scope::facility}}};
  for (const auto& [word, scope] : kNames) {
    if (name.starts_with(word)) return scope;
  }
  return otherwise;
}

}  // namespace

std::optional<Layout> nvidia_smi_layout(const Header& header, Intake& intake) {
  Layout layout;
  layout.cells = header.size();
  layout.comma_and_blank = true;
  bool known = false;
  for (std::size_t i = 0; i < header.size(); ++i) {
    std::string_view base;
    std::string_view unit;
    split_unit(header[i], base, unit);
    const auto column =
        std::find_if(kNvidiaColumns.begin(), kNvidiaColumns.end(), [&](const auto& c) { return c.name == base; });
    known = known || base == "timestamp";
    if (column == kNvidiaColumns.end()) continue;
    const auto scale = scale_of(unit.empty() ? column->unit : unit, column->signal);
    if (!scale && !column->unit.empty()) {
      intake.warn(fmt::format("the column '{}' has an unknown unit and is left out", header[i]));
      continue;
    }
    ValueColumn value{
        i,
        {DeviceId(), column->signal, column->scope, fmt::format("nvidia-smi {}", base)},
        {column->signal, scale.value_or(Scale{}), unit.empty() || unit == column->unit ? column->unit : ""}};
    if (!add_value(layout, std::move(value))) intake.warn(fmt::format("the column '{}' is there twice", header[i]));
  }
  const auto time = find_column(header, {"timestamp"});
  if (!known || !time || layout.values.empty()) return std::nullopt;
  layout.time_cell = *time;
  const auto key = [&](std::initializer_list<std::string_view> names, RowKey kind) {
    const auto cell = find_column(header, names);
    if (!cell || layout.row_key != RowKey::none) return;
    layout.row_key = kind;
    layout.key_cells = {*cell};
  };
  key({"uuid", "gpu_uuid"}, RowKey::device);
  key({"serial", "gpu_serial"}, RowKey::device);
  key({"pci.bus_id", "gpu_bus_id"}, RowKey::pci);
  key({"index"}, RowKey::index);
  if (layout.row_key == RowKey::none) {
    for (auto& value : layout.values) value.key.device = DeviceId::of("unnamed-host/gpu");
    intake.warn("no column names the GPU: all rows are taken as one GPU, unnamed-host/gpu (log the uuid as well)");
  }
  return layout;
}

std::optional<Layout> node_power_layout(const Header& header) {
  Layout layout;
  layout.cells = header.size();
  const auto time = find_time(header, layout.time_unit);
  const auto run = find_column(header, {"run"});
  const auto node = find_column(header, {"node"});
  if (!time || !node) return std::nullopt;
  layout.time_cell = *time;
  layout.row_key = RowKey::node;
  if (run) layout.key_cells.push_back(*run);
  layout.key_cells.push_back(*node);
  for (const auto& [name, scope] : {std::pair{"ac_w", Scope::node_ac}, std::pair{"dc_w", Scope::node_dc}}) {
    const auto cell = find_column(header, {name});
    if (!cell) continue;
    layout.values.push_back({*cell,
                             {DeviceId(), Signal::power_average, scope, fmt::format("node power csv {}", name)},
                             {Signal::power_average, {}}});
  }
  if (layout.values.empty()) return std::nullopt;
  return layout;
}

std::optional<Layout> zeus_layout(const Header& header, const ReadOptions& options) {
  Layout layout;
  layout.cells = header.size();
  if (header.size() < 2 || to_lower(header[0]) != "time") return std::nullopt;
  layout.time_unit = StampUnit::s;
  for (std::size_t i = 1; i < header.size(); ++i) {
    const std::string name = to_lower(header[i]);
    if (!is_index_name(name)) return std::nullopt;
    const auto device =
        DeviceId::parse(fmt::format("{}/gpu-{}", options.index_prefix, name.substr(name.find_first_of("0123456789"))));
    if (!device) return std::nullopt;
    if (!add_value(layout, {i, {*device, Signal::power_average, Scope::board, "zeus power csv"}, {}}))
      return std::nullopt;
  }
  return layout;
}

std::optional<Layout> table_layout(const Header& header, const ReadOptions& options, Intake& intake) {
  Layout layout;
  layout.cells = header.size();
  const auto time = find_time(header, layout.time_unit);
  if (!time) return std::nullopt;
  layout.time_cell = *time;
  const auto run = find_column(header, {"run", "job", "job_id"});
  const auto gpu = find_column(header, {"uuid", "gpu_uuid", "device", "gpu"});
  const auto place = find_column(header, {"node", "host", "hostname", "meter", "name"});
  if (gpu || place) {
    layout.row_key = gpu ? RowKey::device : RowKey::node;
    if (!gpu && run) layout.key_cells.push_back(*run);
    layout.key_cells.push_back(gpu ? *gpu : *place);
  }
  const Scope otherwise = options.scope != Scope::unknown ? options.scope : gpu ? Scope::board : Scope::unknown;
  for (std::size_t i = 0; i < header.size(); ++i) {
    std::string_view base;
    std::string_view unit;
    split_unit(header[i], base, unit);
    const std::string lower = to_lower(base);
    base = lower;
    if (unit.empty()) unit = unit_of_suffix(lower, base);
    if (unit.empty()) {
      if (i != *time &&
          (lower.ends_with("_mw") || lower.ends_with("_mj") || lower.find("power") != std::string::npos)) {
        intake.warn(
            fmt::format("the column '{}' names no unit that can be told for sure and is left out; name it in the "
                        "header, as in power_w or 'power [mW]'",
                        header[i]));
      }
      continue;
    }
    const auto holds = [&](std::string_view word) { return base.find(word) != std::string_view::npos; };
    Signal signal = holds("limit") || holds("cap") ? Signal::limit_requested
                    : holds("instant")             ? Signal::power_instant
                                                   : Signal::power_average;
    auto scale = scale_of(unit, signal);
    if (!scale) {
      signal = Signal::energy;
      scale = scale_of(unit, signal);
    }
    if (!scale) continue;
    ValueColumn value{
        i, {DeviceId(), signal, scope_of_name(base, otherwise), fmt::format("csv {}", header[i])}, {signal, *scale}};
    if (layout.row_key == RowKey::none) {
      std::string name(base);
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return c < 0x21 || c > 0x7e || c == '"' || c == ',' || c == '\'' || c == '\\'; }, '_');
      auto device = DeviceId::parse(name);
      if (!options.device.empty()) device = options.device;
      if (!device) continue;
      value.key.device = *device;
    }
    add_value(layout, std::move(value));
  }
  if (layout.values.empty()) return std::nullopt;
  return layout;
}

std::optional<Layout> layout_of(Format format, const Header& header, const ReadOptions& options, Intake& intake) {
  switch (format) {
    case Format::nvidia_smi:
      return nvidia_smi_layout(header, intake);
    case Format::node_power:
      return node_power_layout(header);
    case Format::zeus: {
      auto layout = zeus_layout(header, options);
      if (layout) {
        intake.warn(
            fmt::format("GPUs are named by index only, which changes with order and reboot; they are called {}/gpu-N",
                        options.index_prefix));
      }
      return layout;
    }
    case Format::table:
      return table_layout(header, options, intake);
    default:
      return std::nullopt;
  }
}

}  // namespace flyball::series
