#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "report/account_view.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/utf8.h"

namespace flyball::report {
namespace {

/// More lines than this are not told apart.
constexpr std::size_t kMostGpus = 8;

std::string share_text(const std::optional<Estimate>& share) {
  if (!share) return "not known";
  const bool open = share->low <= 0 && share->high >= 0;
  return format_percent(*share) + (open ? ", not told apart from 0" : "");
}

std::string switchback_text(const SwitchbackResult& s) {
  if (s.verdict == "too_noisy") return "too noisy: " + clean_utf8(s.reason);
  std::string verdict = s.verdict;
  std::replace(verdict.begin(), verdict.end(), '_', ' ');
  return fmt::format("{}: {} saved and {} lost while control held", verdict, share_text(s.saved_fraction),
                     share_text(s.loss_fraction));
}

/// What the switchback measured, and from how much of the run.
Table switchback_table(const SwitchbackResult& s) {
  Table table{.caption = {}, .columns = {{"", Align::left}, {"", Align::left}}, .rows = {}};
  table.rows = {
      {"Verdict", switchback_text(s)},
      {"Saved over the whole run", share_text(s.saved_run_fraction)},
      {"Lost over the whole run", share_text(s.loss_run_fraction)},
      {"Half-width of the saving",
       s.half_width_fraction > 0 ? "± " + flyball::format_percent(s.half_width_fraction) : "–"},
      {"p of no effect", fmt::format("{:.4f}", s.p_value)},
      {"Blocks", fmt::format("{} under control and {} at the limits found were measured, {} each", s.blocks_control,
                             s.blocks_original, format(s.block))},
      {"Under control", flyball::format_percent(s.control_fraction, 1) + " of the time"},
      {"Left out", flyball::format_percent(s.discarded_fraction, 1) + " of the blocks' time"},
      {"Needed at this noise", s.needed > Seconds(0) ? "about " + format(s.needed) : "–"},
  };
  return table;
}

Json switchback_json(const SwitchbackResult& s) {
  Json made = Json::object();
  made["verdict"] = text(s.verdict);
  made["reason"] = text(s.reason);
  made["saved_fraction"] = estimate(s.saved_fraction);
  made["loss_fraction"] = estimate(s.loss_fraction);
  made["saved_run_fraction"] = estimate(s.saved_run_fraction);
  made["loss_run_fraction"] = estimate(s.loss_run_fraction);
  made["half_width_fraction"] = s.half_width_fraction > 0 ? number(s.half_width_fraction) : Json(nullptr);
  made["p_value"] = number(s.p_value);
  made["block_s"] = s.block > Seconds(0) ? number(s.block.value()) : Json(nullptr);
  made["blocks_control"] = s.blocks_control;
  made["blocks_original"] = s.blocks_original;
  made["control_fraction"] = number(s.control_fraction);
  made["discarded_fraction"] = number(s.discarded_fraction);
  made["needed_s"] = s.needed > Seconds(0) ? number(s.needed.value()) : Json(nullptr);
  return made;
}

std::string limits_text(const RunResult& result) {
  if (result.writes == 0) return "none was written";
  if (result.restored && result.budget) {
    return "at rest, as a budget ends: nothing goes up before `sudo flyball-guard restore --lift-budgets`";
  }
  return result.restored ? "all are back as they were found" : "NOT all are back as they were found";
}

std::string budget_text(const BudgetHeld& b) {
  return fmt::format("{} for the limits of all GPUs together; at most {} were set, {} drawn", format(b.limit),
                     format(b.highest_limits), format(b.highest_power));
}

Table summary(const RunReport& report) {
  const RunResult& r = report.result;
  Table table{.caption = {}, .columns = {{"", Align::left}, {"", Align::left}}, .rows = {}};
  table.rows = {
      {"Plant", r.plant},
      {"Policy", r.policy},
      {"Seed", std::to_string(r.seed)},
      {"Started", r.started == WallTime() ? "–" : format_rfc3339(r.started)},
      {"Saved energy per token", share_text(r.saved_fraction)},
      {"Lost throughput", share_text(r.loss_fraction)},
      {"Basis", r.saved_basis.empty() ? "–" : r.saved_basis},
      {"Writes", fmt::format("{} done, {} refused", format_count(static_cast<double>(r.writes)),
                             format_count(static_cast<double>(r.writes_refused)))},
      {"Limits", limits_text(r)},
  };
  if (r.switchback) table.rows.push_back({"Switchback", switchback_text(*r.switchback)});
  if (r.budget) table.rows.push_back({"Budget", budget_text(*r.budget)});
  if (report.budget) {
    table.rows.push_back(
        {"Budget", fmt::format("{} on {}, {} windows, at most {} of them over", format(report.budget->limit),
                               report.budget->meter.text(), format(report.budget->window),
                               flyball::format_percent(report.budget->allowed_violation_fraction))});
  }
  return table;
}

Table accounts(const RunReport& report) {
  std::vector<std::string> titles = {"this run"};
  std::vector<Account> columns = {report.result.account};
  if (report.result.counterfactual) {
    titles.push_back("limits as found");
    columns.push_back(*report.result.counterfactual);
  }
  return account_table(titles, columns, report.rates.currency);
}

/// "0.0873 kWh (0.08 to 0.09)"; what is exact has no interval.
std::string amount(const Estimate& e, const std::string& unit) {
  const std::string value = fmt::format("{:.3g} {}", e.value, unit);
  return e.low == e.high ? value : value + fmt::format(" ({:.3g} to {:.3g})", e.low, e.high);
}

/// With what it stands on, for money says nothing without its prices.
Table worth_table(const Worth& w, const Rates& rates, const std::optional<CoolingRelief>& relief) {
  Table table{.caption = {}, .columns = {{"", Align::left}, {"", Align::left}}, .rows = {}};
  table.rows = {
      {"Less power", format_percent(w.power_reduction_fraction) + " of the boards' mean"},
      {"Energy per token of the node", format_percent(w.node_saved_fraction) + " saved, with " +
                                           format(rates.other_power_per_gpu) + " beside each GPU"},
      {"From one feed", format_percent(w.fixed_feed_gain_fraction) + " more tokens per second, with as many more GPUs"},
      {"Energy", amount(w.energy_saved_kwh, "kWh") + " less for the same tokens"},
  };
  if (relief)
    table.rows.push_back(
        {"Cooling and delivery",
         fmt::format("{} less again: {} of it, {}", amount(saved_again(w.energy_saved_kwh, relief->fraction), "kWh"),
                     relief->fraction.low == relief->fraction.high ? flyball::format_percent(relief->fraction.value, 1)
                                                                   : format_percent(relief->fraction, 1),
                     clean_utf8(relief->basis))});
  if (w.net_money) {
    const std::string lost = rates.gpu_hour_price > 0
                                 ? fmt::format("lost time at {} {} a GPU-hour", rates.gpu_hour_price, rates.currency)
                                 : "lost time not counted: rates.gpu_hour_price is not stated";
    table.rows.push_back({"Net", fmt::format("{}: energy at {} {}/kWh, {}", amount(*w.net_money, rates.currency),
                                             rates.price_per_kwh, rates.currency, lost)});
  }
  if (w.carbon_saved_g) table.rows.push_back({"Carbon", amount(*w.carbon_saved_g, "g CO2e") + " less"});
  return table;
}

Json worth_json(const Worth& w, const std::optional<CoolingRelief>& relief) {
  Json made = Json::object();
  made["power_reduction_fraction"] = estimate(w.power_reduction_fraction);
  made["node_saved_fraction"] = estimate(w.node_saved_fraction);
  made["fixed_feed_gain_fraction"] = estimate(w.fixed_feed_gain_fraction);
  made["energy_saved_kwh"] = estimate(w.energy_saved_kwh);
  made["net_money"] = estimate(w.net_money);
  made["carbon_saved_g"] = estimate(w.carbon_saved_g);
  if (relief)
    made["cooling"] = {{"saved_again_fraction", estimate(relief->fraction)},
                       {"energy_saved_kwh", estimate(saved_again(w.energy_saved_kwh, relief->fraction))},
                       {"basis", text(relief->basis)}};
  return made;
}

/// What the guard did to each GPU, at most `most` of them.
Table guard_table(const std::vector<GpuControl>& gpus, std::size_t most) {
  Table table{.caption = {},
              .columns = {{"GPU", Align::left},
                          {"found", Align::right},
                          {"mean", Align::right},
                          {"lowest", Align::right},
                          {"clocks at most", Align::right},
                          {"writes", Align::right},
                          {"refused", Align::right},
                          {"afterwards", Align::left}},
              .rows = {}};
  const auto limit = [](const Sample<Milliwatts>& l) { return l ? format(*l) : std::string("–"); };
  for (const GpuControl& gpu : gpus) {
    if (table.rows.size() == most) {
      table.caption = fmt::format("{} of {} GPUs; --json and --report have all", most, gpus.size());
      break;
    }
    table.rows.push_back({gpu.device.text(), limit(gpu.found), limit(gpu.mean), limit(gpu.lowest),
                          gpu.lowest_lock ? format(*gpu.lowest_lock) : "not locked", std::to_string(gpu.writes),
                          std::to_string(gpu.refused), gpu.after.empty() ? "–" : gpu.after});
  }
  return table;
}

Json gpus_json(const std::vector<GpuControl>& gpus) {
  const auto limit = [](const Sample<Milliwatts>& l) { return l ? number((*l).watts().value()) : Json(nullptr); };
  Json list = Json::array();
  for (const GpuControl& gpu : gpus) {
    Json made = Json::object();
    made["device"] = text(gpu.device.text());
    made["limit_found_w"] = limit(gpu.found);
    made["limit_mean_w"] = limit(gpu.mean);
    made["limit_lowest_w"] = limit(gpu.lowest);
    made["clocks_locked_lowest_hz"] = gpu.lowest_lock ? number((*gpu.lowest_lock).value()) : Json(nullptr);
    made["writes"] = gpu.writes;
    made["refused"] = gpu.refused;
    made["after"] = gpu.after.empty() ? Json(nullptr) : text(gpu.after);
    list.push_back(std::move(made));
  }
  return list;
}

Json findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    Json made = Json::object();
    made["severity"] = std::string(to_string(finding.severity));
    made["code"] = text(finding.code);
    made["device"] = finding.device.empty() ? Json(nullptr) : text(finding.device.text());
    made["what"] = text(finding.what);
    made["remedy"] = finding.remedy.empty() ? Json(nullptr) : text(finding.remedy);
    made["since"] = time(finding.since);
    made["confidence_fraction"] = number(finding.confidence_fraction);
    list.push_back(std::move(made));
  }
  return list;
}

bool is_power(Signal signal) { return signal == Signal::power_average || signal == Signal::power_instant; }

/// Power of each device as a line, its enforced limit as a dashed step of the same colour.
Plot power_plot(const RunReport& report) {
  Plot plot;
  plot.title = "Power and limits";
  plot.description = "Power over time, with the enforced limit of each GPU as a dashed line.";
  plot.x = {.label = "time", .unit = {}, .kind = AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = AxisKind::linear, .from_zero = true};
  std::vector<DeviceId> drawn;
  std::set<DeviceId> devices;
  for (const series::Series& s : report.series) {
    const bool power = is_power(s.key.signal);
    if (!power && s.key.signal != Signal::limit_enforced) continue;
    devices.insert(s.key.device);
    auto known = std::find(drawn.begin(), drawn.end(), s.key.device);
    if (known == drawn.end()) {
      if (drawn.size() == kMostGpus) continue;
      known = drawn.insert(drawn.end(), s.key.device);
    }
    PlotLine line = line_of(s, s.key.device.text() + (power ? "" : " limit"), power ? LineKind::line : LineKind::step);
    line.color = static_cast<int>(known - drawn.begin());
    line.dashed = !power;
    plot.lines.push_back(std::move(line));
  }
  if (devices.size() > drawn.size()) {
    plot.title += fmt::format(" ({} of {} devices)", drawn.size(), devices.size());
  }
  // Training is what is left blank.
  std::vector<PhaseSpan> others = report.phases;
  std::erase_if(others, [](const PhaseSpan& span) { return span.label == Phase::training; });
  plot.spans = spans_of(others);
  // Per-GPU lines say nothing about a budget on the meter above them unless it is the only one.
  if (report.budget && devices.size() == 1) {
    plot.rules.push_back({report.budget->limit.value(), "budget " + format(report.budget->limit)});
  }
  return plot;
}

}  // namespace

Estimate saved_again(const Estimate& energy, const Estimate& fraction) {
  const std::array<double, 4> ends = {energy.low * fraction.low, energy.low * fraction.high, energy.high * fraction.low,
                                      energy.high * fraction.high};
  const auto [low, high] = std::minmax_element(ends.begin(), ends.end());
  return {energy.value * fraction.value, *low, *high, std::min(energy.level, fraction.level)};
}

std::string run_text(const RunReport& report) {
  std::string text = to_text(summary(report)) + '\n' + to_text(accounts(report));
  const RunResult& r = report.result;
  if (r.writes > 0) text += "\nWhat the guard did\n" + to_text(guard_table(r.gpus, kMostGpus));
  if (r.worth) text += "\nWhat it is worth\n" + to_text(worth_table(*r.worth, report.rates, report.relief));
  for (const Finding& finding : report.result.findings) {
    text += fmt::format("\n{}: {}", to_string(finding.severity), clean_utf8(finding.what));
    if (!finding.device.empty()) text += " (" + finding.device.text() + ")";
    text += '\n';
    if (!finding.remedy.empty()) text += "  " + clean_utf8(finding.remedy) + '\n';
  }
  return text;
}

Json run_json(const RunReport& report) {
  const RunResult& r = report.result;
  Json made = document("run");
  made["plant"] = text(r.plant);
  made["policy"] = text(r.policy);
  made["seed"] = r.seed;
  made["started"] = time(r.started);
  add_account(made, r.account, report.rates.currency);
  made["saved_fraction"] = estimate(r.saved_fraction);
  made["loss_fraction"] = estimate(r.loss_fraction);
  made["saved_basis"] = text(r.saved_basis);
  made["switchback"] = r.switchback ? switchback_json(*r.switchback) : Json(nullptr);
  made["counterfactual"] = r.counterfactual ? to_json(*r.counterfactual, report.rates.currency) : Json(nullptr);
  Json budget = nullptr;
  if (report.budget) {
    budget = Json::object();
    budget["meter"] = text(report.budget->meter.text());
    budget["limit_w"] = number(report.budget->limit.value());
    budget["window_s"] = number(report.budget->window.value());
    budget["allowed_violation_fraction"] = number(report.budget->allowed_violation_fraction);
  }
  if (r.budget) {
    budget = Json::object();
    budget["limit_w"] = number(r.budget->limit.value());
    budget["highest_limits_w"] = number(r.budget->highest_limits.value());
    budget["highest_power_w"] = number(r.budget->highest_power.value());
  }
  made["budget"] = std::move(budget);
  made["worth"] = r.worth ? worth_json(*r.worth, report.relief) : Json(nullptr);
  made["gpus"] = gpus_json(r.gpus);
  made["phases"] = Json::array();
  for (const PhaseSpan& span : report.phases) {
    Json phase = Json::object();
    phase["label"] = std::string(to_string(span.label));
    phase["start"] = time(span.start);
    phase["stop"] = time(span.stop);
    made["phases"].push_back(std::move(phase));
  }
  made["findings"] = findings_json(r.findings);
  made["writes"] = r.writes;
  made["writes_refused"] = r.writes_refused;
  made["restored"] = r.restored;
  return made;
}

std::string run_html(const RunReport& report) {
  const RunResult& r = report.result;
  HtmlPage page("flyball run: " + r.policy, r.plant);
  const auto short_share = [](const std::optional<Estimate>& share) {
    return share ? flyball::format_percent(share->value) : std::string("not known");
  };
  const auto range = [](const std::optional<Estimate>& share) {
    if (!share) return std::string();
    if (share->low == share->high) return std::string("exact, of a simulation");
    const bool open = share->low <= 0 && share->high >= 0;
    return fmt::format("{} to {} at {:.0f} %{}", flyball::format_percent(share->low),
                       flyball::format_percent(share->high), share->level * 100, open ? "; not told apart from 0" : "");
  };
  page.figures({{"Saved energy per token", short_share(r.saved_fraction), range(r.saved_fraction)},
                {"Lost throughput", short_share(r.loss_fraction), range(r.loss_fraction)},
                {"Energy", r.account.coverage_fraction > 0 ? format(r.account.energy) : "–",
                 fmt::format("scope {}, {} measured", to_string(r.account.scope),
                             flyball::format_percent(r.account.coverage_fraction, 1))},
                {"Limits",
                 r.writes == 0 ? "not written"
                 : r.restored  ? "restored"
                               : "NOT restored",
                 limits_text(r)}});
  page.section("Over time").plot(power_plot(report));
  page.section("Accounts").table(accounts(report));
  if (r.worth) page.section("What it is worth").table(worth_table(*r.worth, report.rates, report.relief));
  if (r.writes > 0) page.section("What the guard did").table(guard_table(r.gpus, r.gpus.size()));
  if (r.switchback) page.section("Switchback").table(switchback_table(*r.switchback));
  page.section("Findings").findings(r.findings);
  page.section("The run").table(summary(report));
  return page.page();
}

}  // namespace flyball::report
