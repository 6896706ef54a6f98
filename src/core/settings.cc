#include "core/settings.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/text.h"

namespace flyball {
namespace {

constexpr double kGigawatt = 1e9;
constexpr double kLargestBoard = 10e3;  // W; far above any board, below any number of milliwatts that is one
constexpr double kDay = 86400;
using enum ConfigType;

constexpr ConfigKey kKeys[] = {
    {"run.gpus", texts, "", 0, 0, "The GPUs to control, by UUID; none named = all", ""},
    {"run.policy", text, "model", 0, 0, "The policy that proposes limits; `flyball policy list` names them",
     "the curve-based policy needs no training"},
    {"run.interval", duration, "10s", 1, 3600, "Between two decisions", "the published controller decides every 10 s"},
    {"run.sample", duration, "0.5s", 0.05, 60, "Between two readings of each GPU",
     "the published telemetry is taken at 0.5 s"},
    {"run.switchback_share", fraction, "0.05", 0, 0.5,
     "Share of the time at the limits found, by which the saving is measured; 0 = never",
     "one block in twenty measures six hours to half a point and costs a twentieth of the saving"},
    {"run.max_loss", fraction, "0.012", 0, 0.5, "Throughput that may be lost; excludes alpha",
     "the published loss on 64 GPUs"},
    {"run.alpha", number, "", 0, 1000, "Weight of lost throughput against saved energy; excludes max_loss", ""},
    {"run.budget", power, "", 1, kGigawatt, "Bound on the draw at budget_meter", ""},
    {"run.budget_meter", text, "", 0, 0, "The meter that the budget bounds", ""},
    {"run.budget_window", duration, "30s", 0.5, 3600, "Window over which the draw is averaged",
     "the published window of violations"},
    {"run.budget_violation", fraction, "0.01", 0, 1, "Share of windows that may be over the budget",
     "the published controller's own target"},
    {"run.duration", duration, "", 1, 365 * kDay, "How long to run; not given = until told to stop", ""},
    {"run.state_dir", text, "", 0, 0, "Where runs and recordings are kept", ""},

    {"site.minimum", power, "", 1, kLargestBoard, "Lowest limit of any GPU; not given = the board's own", ""},
    {"site.maximum", power, "", 1, kLargestBoard, "Highest limit of any GPU; not given = the board's own", ""},
    {"site.safe_cap", power, "", 1, kLargestBoard,
     "Limit to which a GPU falls when a budget lease ends; not given = the lowest allowed", ""},
    {"site.clocks_unlocked", flag, "false", 0, 0,
     "Clocks are unlocked before flyball starts, so that a reset restores them", "a lock cannot be read back"},
    {"site.node_meter", text, "", 0, 0, "The meter at the node's input", ""},
    {"site.node_limit", power, "", 1, kGigawatt, "What the node may draw at that meter", ""},
    {"site.non_gpu_maximum", power, "", 0, kGigawatt,
     "Most that processors, memory, fans and network of the node draw; from its data sheet", ""},
    {"site.lowest_supply_efficiency", fraction, "0.90", 0.5, 1, "Of the power supplies, at any load that occurs",
     "80 PLUS Gold at full load is 0.87 to 0.92"},
    {"site.highest_supply_efficiency", fraction, "0.96", 0.5, 1, "Of the power supplies, at any load that occurs",
     "80 PLUS Titanium at half load"},
    {"site.overshoot", fraction, "0.05", 0, 1, "What boards draw above their limit within the window",
     "to be measured on the board; steps down overshoot for seconds on some"},
    {"site.meter_accuracy", fraction, "0.02", 0, 0.2, "Of the meter; from its data sheet", "accuracy class 2"},
    {"site.gpu.*.minimum", power, "", 1, kLargestBoard, "Lowest limit of this GPU", ""},
    {"site.gpu.*.maximum", power, "", 1, kLargestBoard, "Highest limit of this GPU", ""},
    {"site.gpu.*.safe_cap", power, "", 1, kLargestBoard, "Limit to which it falls when a budget lease ends", ""},
    {"site.gpu.*.clocks_unlocked", flag, "", 0, 0, "Its clocks are unlocked before flyball starts", ""},

    {"rates.price_per_kwh", number, "0", 0, 1e3, "Price of a kilowatt-hour", "0 = not stated"},
    {"rates.carbon_g_per_kwh", number, "0", 0, 1e4, "Grams of CO2 equivalent per kilowatt-hour", "0 = not stated"},
    {"rates.gpu_hour_price", number, "0", 0, 1e4, "Price of an hour of one GPU's computing", "0 = not stated"},
    {"rates.other_power_per_gpu", power, "187.5W", 0, kLargestBoard,
     "What a node draws beside its GPUs, for each of them: for energy and tokens of whole nodes",
     "1,500 W of 8-H100 nodes, fitted to node power of MLPerf Training v4.0 (doc/twin.md)"},
    {"rates.currency", text, "EUR", 0, 0, "Of the prices", "no bearing on any number"},

    {"guard.socket", text, "/run/flyball/guard.sock", 0, 0, "Where the guard listens", "the service's runtime folder"},
    {"guard.journal", text, "/var/lib/flyball/guard.journal", 0, 0, "The guard's own append-only file",
     "the service's state folder"},
    {"guard.audit", text, "/var/lib/flyball/guard.audit", 0, 0, "The guard's log of who asked and what was written",
     "the service's state folder"},
    {"guard.group", text, "", 0, 0, "Group that may talk to the guard; not given = the guard's own", ""},
    {"guard.site_users", texts, "", 0, 0, "Users who may ask with the site's authority, beside root", ""},
    {"guard.fleet_users", texts, "", 0, 0, "Users who may ask with the fleet's authority", ""},
    {"guard.require_allowance", flag, "false", 0, 0,
     "A job may only ask for boards that the site has allowed to its user", "a machine of one user needs no scheduler"},
    {"guard.lease", duration, "10s", 1, 3600, "Longest that a lease lives unrenewed", "doc/safety.md"},
    {"guard.verify_interval", duration, "2s", 0.2, 60, "Between two looks at each held board",
     "a driver call takes 10 to 20 ms and a board needs three"},
    {"guard.dwell", duration, "1s", 0, 600, "Shortest time between two writes to one board",
     "the window over which most boards average their power"},
    {"guard.stale_after", duration, "6s", 0.5, 600, "Without a good read for this long a board is silent",
     "three verify intervals"},
    {"guard.dead_band", power, "1W", 0, 500, "Wishes nearer than this to what holds are not written",
     "boards round limits by up to a watt"},
    {"guard.rounding", power, "1W", 0, 50, "Limits this near are the same limit",
     "boards round limits by up to a watt"},
    {"guard.largest_step_down", power, "150W", 1, kLargestBoard, "Largest single step of a limit",
     "some boards overshoot after larger ones"},
    {"guard.largest_step_up", power, "150W", 1, kLargestBoard, "Largest single step of a limit", "as downward"},
    {"guard.drift_rewrites", whole, "5", 0, 1000, "Rewrites of a limit that someone else keeps changing",
     "doubling pauses make five of them a minute: then a person decides"},
    {"guard.drift_quiet", duration, "6h", 1, 7 * kDay, "Quiet for this long: the count starts anew", "a shift"},
    {"guard.drift_budget_pause", duration, "30min", 1, kDay, "Between rewrites that go on under a budget",
     "rare enough not to be a fight"},
    {"guard.retry_first", duration, "1s", 0.1, 60, "First pause after a failed write; it doubles", "as dwell"},
    {"guard.retry_longest", duration, "60s", 1, 3600, "Longest pause between tries",
     "a minute without restore is seen"},
};

/// Collects the faults of single fields, so that all are told.
class Builder {
 public:
  explicit Builder(const Config& config) : config_(config) {}

  tl::expected<Settings, std::vector<Error>> build() {
    run();
    site();
    rates();
    guard();
    if (!faults_.empty()) return tl::unexpected(std::move(faults_));
    return std::move(settings_);
  }

 private:
  void fault(const std::string& path, std::string what, std::string remedy = {}) {
    faults_.push_back({ErrorCode::input, path + ": " + std::move(what), config_.where(path), std::move(remedy)});
  }

  /// A declared default makes these always present.
  Seconds seconds(std::string_view path) { return config_.duration(path).value_or(Seconds(0)); }
  Milliwatts limit(std::string_view path) { return Milliwatts::from(config_.power(path).value_or(Watts(0))); }
  std::optional<Milliwatts> optional_limit(const std::string& path) {
    const auto value = config_.power(path);
    return value ? std::optional(Milliwatts::from(*value)) : std::nullopt;
  }
  std::string words(std::string_view path) { return config_.text(path).value_or(std::string()); }

  std::optional<DeviceId> device(const std::string& path, std::string_view name) {
    auto id = DeviceId::parse(name);
    if (id) return *std::move(id);
    fault(path, id.error().what, id.error().remedy);
    return std::nullopt;
  }

  void run() {
    RunSettings& run = settings_.run;
    for (const std::string& name : config_.texts("run.gpus")) {
      if (const auto id = device("run.gpus", name)) run.gpus.push_back(*id);
    }
    run.policy = words("run.policy");
    run.interval = seconds("run.interval");
    run.sample = seconds("run.sample");
    run.switchback_share = config_.fraction("run.switchback_share").value_or(0);
    run.duration = config_.duration("run.duration");
    run.state_dir = words("run.state_dir");
    if (run.sample * 2 > run.interval) {
      fault("run.sample", format(run.sample) + " is more than half of run.interval, " + format(run.interval),
            "decide on at least two readings");
    }
    objective();
    budget();
  }

  void objective() {
    Objective& objective = settings_.run.objective;
    objective.alpha = config_.number("run.alpha");
    objective.max_loss_fraction = config_.fraction("run.max_loss");
    if (!objective.alpha) return;
    if (config_.where("run.max_loss") != "default") {
      fault("run.alpha", "excludes run.max_loss", "keep one of the two");
    }
    objective.max_loss_fraction.reset();
  }

  void budget() {
    const auto limit = config_.power("run.budget");
    const std::string meter = words("run.budget_meter");
    if (!limit) {
      if (!meter.empty()) fault("run.budget_meter", "there is no run.budget for it");
      return;
    }
    if (meter.empty()) return fault("run.budget", "has no meter", "name it in run.budget_meter");
    const auto id = device("run.budget_meter", meter);
    if (!id) return;
    settings_.run.budget =
        Budget{*id, *limit, seconds("run.budget_window"), config_.fraction("run.budget_violation").value_or(0)};
  }

  void site() {
    SiteSettings& site = settings_.site;
    site.everywhere = range("site", BoardRange());
    for (const std::string& name : config_.names("site.gpu")) {
      const std::string section = "site.gpu." + name;
      auto id = DeviceId::parse(name);
      if (!id) {
        faults_.push_back({ErrorCode::input, section + ": " + id.error().what, first_line(section), id.error().remedy});
        continue;
      }
      site.boards[*id] = range(section, site.everywhere);
    }
    node_budget();
  }

  std::string first_line(const std::string& section) {
    for (const char* key : {".minimum", ".maximum", ".safe_cap", ".clocks_unlocked"}) {
      if (std::string where = config_.where(section + key); where != "default") return where;
    }
    return "default";
  }

  BoardRange range(const std::string& section, BoardRange range) {
    const auto take = [&](const char* name, std::optional<Milliwatts>& into) {
      if (const auto value = optional_limit(section + name)) into = value;
    };
    take(".minimum", range.minimum);
    take(".maximum", range.maximum);
    take(".safe_cap", range.safe_cap);
    range.clocks_unlocked = config_.flag(section + ".clocks_unlocked").value_or(range.clocks_unlocked);
    const auto above = [](const std::optional<Milliwatts>& a, const std::optional<Milliwatts>& b) {
      return a && b && *a > *b;
    };
    if (above(range.minimum, range.maximum)) {
      fault(section + ".minimum", format(*range.minimum) + " is above the maximum, " + format(*range.maximum));
    }
    if (above(range.safe_cap, range.maximum) || above(range.minimum, range.safe_cap)) {
      fault(section + ".safe_cap", format(*range.safe_cap) + " is outside minimum and maximum");
    }
    return range;
  }

  void node_budget() {
    const auto limit = config_.power("site.node_limit");
    if (!limit) return;
    const auto non_gpu = config_.power("site.non_gpu_maximum");
    const std::string meter = words("site.node_meter");
    if (!non_gpu) fault("site.node_limit", "needs site.non_gpu_maximum", "take it from the node's data sheet");
    if (meter.empty()) return fault("site.node_limit", "has no meter", "name it in site.node_meter");
    const auto id = device("site.node_meter", meter);
    if (!id || !non_gpu) return;
    NodeBudgetSettings made{*id,
                            *limit,
                            *non_gpu,
                            config_.fraction("site.lowest_supply_efficiency").value_or(0),
                            config_.fraction("site.highest_supply_efficiency").value_or(0),
                            config_.fraction("site.overshoot").value_or(0),
                            config_.fraction("site.meter_accuracy").value_or(0)};
    if (made.lowest_supply_efficiency > made.highest_supply_efficiency) {
      fault("site.lowest_supply_efficiency", "is above site.highest_supply_efficiency");
    }
    if (made.non_gpu_maximum >= made.limit) {
      fault("site.non_gpu_maximum", format(made.non_gpu_maximum) + " leaves nothing of " + format(made.limit));
    }
    settings_.site.node_budget = made;
  }

  void rates() {
    Rates& rates = settings_.rates;
    rates.price_per_kwh = config_.number("rates.price_per_kwh").value_or(0);
    rates.carbon_g_per_kwh = config_.number("rates.carbon_g_per_kwh").value_or(0);
    rates.gpu_hour_price = config_.number("rates.gpu_hour_price").value_or(0);
    rates.other_power_per_gpu = config_.power("rates.other_power_per_gpu").value_or(Watts(0));
    rates.currency = words("rates.currency");
    if (rates.currency.empty() || rates.currency.size() > 8) fault("rates.currency", "has 1 to 8 characters");
  }

  void guard() {
    GuardSettings& guard = settings_.guard;
    guard.socket = path_of("guard.socket");
    guard.journal = path_of("guard.journal");
    guard.audit = path_of("guard.audit");
    guard.group = words("guard.group");
    guard.site_users = config_.texts("guard.site_users");
    guard.fleet_users = config_.texts("guard.fleet_users");
    guard.require_allowance = config_.flag("guard.require_allowance").value_or(false);
    guard.lease = seconds("guard.lease");
    guard.verify_interval = seconds("guard.verify_interval");
    guard.dwell = seconds("guard.dwell");
    guard.stale_after = seconds("guard.stale_after");
    guard.dead_band = limit("guard.dead_band");
    guard.rounding = limit("guard.rounding");
    guard.largest_step_down = limit("guard.largest_step_down");
    guard.largest_step_up = limit("guard.largest_step_up");
    guard.drift_rewrites = static_cast<int>(config_.whole("guard.drift_rewrites").value_or(0));
    guard.drift_quiet = seconds("guard.drift_quiet");
    guard.drift_budget_pause = seconds("guard.drift_budget_pause");
    guard.retry_first = seconds("guard.retry_first");
    guard.retry_longest = seconds("guard.retry_longest");
    constexpr std::size_t kLongestSocketPath = 107;  // sun_path of unix(7), less its final 0
    if (guard.socket.size() > kLongestSocketPath) fault("guard.socket", "is longer than 107 characters");
    if (guard.stale_after < guard.verify_interval) {
      fault("guard.stale_after", "is shorter than guard.verify_interval: every board would be silent");
    }
    if (guard.retry_longest < guard.retry_first) fault("guard.retry_longest", "is shorter than guard.retry_first");
  }

  std::string path_of(const std::string& key) {
    std::string path = words(key);
    if (!path.starts_with('/')) fault(key, "'" + path.substr(0, 80) + "' is not an absolute path");
    return path;
  }

  const Config& config_;
  Settings settings_;
  std::vector<Error> faults_;
};

}  // namespace

std::span<const ConfigKey> settings_keys() { return kKeys; }

tl::expected<Settings, std::vector<Error>> make_settings(const Config& config) { return Builder(config).build(); }

tl::expected<Settings, std::vector<Error>> parse_settings(std::string_view text, const std::string& name) {
  auto config = Config::parse(text, name, settings_keys());
  if (!config) return tl::unexpected(std::move(config.error()));
  return make_settings(*config);
}

Settings default_settings() {
  auto made = make_settings(Config::defaults(settings_keys()));
  if (made) return *std::move(made);
  std::fprintf(stderr, "flyball: %s\n", made.error().front().message().c_str());
  std::abort();
}

}  // namespace flyball
