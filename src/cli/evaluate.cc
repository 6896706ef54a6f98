#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/presets.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/arguments.h"
#include "cli/objective.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "curve/table.h"
#include "evaluate/evaluate.h"
#include "evaluate/twin_plant.h"
#include "report/html.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

struct Options {
  std::vector<std::string> curves;
  std::vector<std::string> scenarios;
  std::vector<std::string> set;
  std::string board;
  std::vector<std::string> policies{"none", "static", "sweep", "bandit", "pi", "model", "oracle"};
  ObjectiveOptions objective;
  int seeds = 5;
  std::uint64_t seed = 1;
  std::string noise = "0.003", drift = "0.005";
  std::string duration = "6h";
  std::string report;
};

Result<std::vector<curve::MeasuredCurve>> load(const Options& options) {
  std::vector<curve::MeasuredCurve> all;
  for (const std::string& file : options.curves) {
    FLYBALL_ASSIGN(const auto bytes, open_bytes(file));
    const std::string board = options.board.empty() ? std::filesystem::path(file).stem().string() : options.board;
    FLYBALL_ASSIGN(const curve::CurveTable table, curve::read_curves(*bytes, file, board));
    for (const curve::SkippedRow& row : table.skipped) {
      log::warning("evaluate", "{}:{}: skipped: {}", file, row.line, row.reason);
    }
    all.insert(all.end(), table.curves.begin(), table.curves.end());
  }
  std::erase_if(all, [](const curve::MeasuredCurve& c) {
    const bool short_one = c.points.size() < 2;
    if (short_one) log::warning("evaluate", "{}: left out, it has one limit only", c.name());
    return short_one;
  });
  if (all.empty()) return fail(ErrorCode::input, "no curve has two limits or more", options.curves.front());
  return all;
}

Result<std::vector<evaluate::Subject>> load_scenarios(const Options& options, Context& context) {
  FLYBALL_ASSIGN(const std::string presets, presets_folder());
  std::vector<evaluate::Subject> subjects;
  for (const std::string& name : options.scenarios) {
    FLYBALL_ASSIGN(twin::Scenario scenario, twin::load_scenario(context.files, presets, name));
    FLYBALL_TRY(twin::override_parameters(scenario, options.set));
    FLYBALL_ASSIGN(evaluate::Subject subject, evaluate::twin_subject(scenario, options.seed));
    subjects.push_back(std::move(subject));
  }
  return subjects;
}

report::Table summary_table(const std::vector<evaluate::Summary>& summaries, const evaluate::Evaluation& evaluation,
                            bool on_twin) {
  using report::Align;
  const std::string plants = fmt::format("{} {}", evaluation.curves.size(), on_twin ? "scenarios" : "curves");
  const std::string noise =
      on_twin ? "" : fmt::format(", noise {} in 10 s", format_percent(evaluation.options.noise.throughput, 1));
  report::Table table{.caption = fmt::format("{} × {} seeds, {} simulated each{}; true values, no estimates", plants,
                                             evaluation.options.seeds, format(evaluation.options.duration), noise),
                      .columns = {{"policy"},
                                  {"knows", Align::left},
                                  {"saved", Align::right},
                                  {"lost", Align::right},
                                  {"of the best mix (95 %)", Align::right},
                                  {"within bound", Align::right},
                                  {"worst loss", Align::right},
                                  {"as found", Align::right},
                                  {"looks", Align::right},
                                  {"decisions to 90 %", Align::right},
                                  {"p90", Align::right}},
                      .rows = {}};
  const auto count = [](const std::optional<double>& n) {
    if (!n) return std::string("–");
    return std::isfinite(*n) ? fmt::format("{:.0f}", *n) : std::string("never");
  };
  for (const evaluate::Summary& s : summaries) {
    table.rows.push_back(
        {s.policy, s.hindsight ? "hindsight" : "causal", format_percent(s.saved_fraction),
         format_percent(s.loss_fraction),
         fmt::format("{:.3f} ({:.3f} to {:.3f})", s.pooled_ratio.value, s.pooled_ratio.low, s.pooled_ratio.high),
         s.binding_runs > 0 ? format_percent(s.binding_within_fraction, 1) : "–", format_percent(s.worst_loss_fraction),
         format_percent(s.uncontrolled_fraction, 1), format_percent(s.looks_fraction, 1),
         s.policy == "none" ? "–" : count(s.median_decisions), s.policy == "none" ? "–" : count(s.p90_decisions)});
  }
  return table;
}

/// The same saving as it shows elsewhere: in power, at the node, as tokens from one feed, in money.
report::Table worth_table(const std::vector<evaluate::Summary>& summaries, const Rates& rates) {
  using report::Align;
  const bool priced = rates.price_per_kwh > 0;
  std::string caption = "What that is worth, with " + format(rates.other_power_per_gpu) + " beside each GPU";
  if (priced) {
    caption += fmt::format(", energy at {} {}/kWh, ", rates.price_per_kwh, rates.currency);
    caption += rates.gpu_hour_price > 0
                   ? fmt::format("lost time at {} {} a GPU-hour", rates.gpu_hour_price, rates.currency)
                   : "lost time not counted (rates.gpu_hour_price)";
  }
  report::Table table{.caption = caption,
                      .columns = {{"policy"},
                                  {"less power", Align::right},
                                  {"saved at the node", Align::right},
                                  {"tokens/s from one feed", Align::right},
                                  {"net a GPU-year", Align::right}},
                      .rows = {}};
  for (const evaluate::Summary& s : summaries) {
    table.rows.push_back(
        {s.policy, format_percent(s.power_reduction_fraction), format_percent(s.node_saved_fraction),
         fmt::format("{:+.2f} %", s.fixed_feed_gain_fraction * 100),
         s.net_money_per_gpu_year ? fmt::format("{:.2f} {}", *s.net_money_per_gpu_year, rates.currency) : "–"});
  }
  return table;
}

report::Table comparison_table(const std::vector<evaluate::Comparison>& comparisons) {
  using report::Align;
  report::Table table{.caption = comparisons.empty()
                                     ? ""
                                     : comparisons.front().policy +
                                           " against the others, run by run (who lost too much is scaled to the bound)",
                      .columns = {{"other"},
                                  {"knows", Align::left},
                                  {"ahead in", Align::right},
                                  {"saves × other", Align::right},
                                  {"worse by > 0.2 point in", Align::right}},
                      .rows = {}};
  for (const evaluate::Comparison& c : comparisons) {
    table.rows.push_back({c.other, c.other_hindsight ? "hindsight" : "causal", format_percent(c.ahead_fraction, 1),
                          c.pooled_ratio > 0 ? fmt::format("{:.2f}", c.pooled_ratio) : "–",
                          format_percent(c.clearly_worse_fraction, 1)});
  }
  return table;
}

report::Json to_json(const evaluate::Summary& s) {
  report::Json made = report::Json::object();
  made["policy"] = report::text(s.policy);
  made["knows"] = s.hindsight ? "hindsight" : "causal";
  made["saved_fraction"] = report::number(s.saved_fraction);
  made["loss_fraction"] = report::number(s.loss_fraction);
  made["pooled_ratio"] = report::estimate(s.pooled_ratio);
  made["worst_loss_fraction"] = report::number(s.worst_loss_fraction);
  made["binding_runs"] = s.binding_runs;
  made["binding_within_fraction"] = s.binding_runs > 0 ? report::number(s.binding_within_fraction) : report::Json();
  made["uncontrolled_fraction"] = report::number(s.uncontrolled_fraction);
  made["looks_fraction"] = report::number(s.looks_fraction);
  const auto decisions = [](const std::optional<double>& n) { return n ? report::number(*n) : report::Json(nullptr); };
  made["decisions_to_target_median"] = decisions(s.median_decisions);
  made["decisions_to_target_p90"] = decisions(s.p90_decisions);
  made["writes_mean"] = report::number(s.writes);
  made["power_reduction_fraction"] = report::number(s.power_reduction_fraction);
  made["node_saved_fraction"] = report::number(s.node_saved_fraction);
  made["fixed_feed_gain_fraction"] = report::number(s.fixed_feed_gain_fraction);
  made["net_money_per_gpu_year"] =
      s.net_money_per_gpu_year ? report::number(*s.net_money_per_gpu_year) : report::Json(nullptr);
  return made;
}

report::Json scores_json(const evaluate::Evaluation& evaluation) {
  report::Json runs = report::Json::array();
  for (const evaluate::PolicyScores& policy : evaluation.policies) {
    for (const evaluate::Score& score : policy.scores) {
      report::Json run = report::Json::object();
      run["policy"] = report::text(policy.policy);
      run["curve"] = report::text(evaluation.curves[score.curve].name);
      run["seed"] = score.seed;
      run["saved_fraction"] = report::number(score.saved_fraction);
      run["loss_fraction"] = report::number(score.loss_fraction);
      run["uncontrolled_fraction"] = report::number(score.uncontrolled_fraction);
      run["looks_fraction"] = report::number(score.looks_fraction);
      run["decisions_to_target"] =
          score.decisions_to_target ? report::number(*score.decisions_to_target) : report::Json(nullptr);
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

report::Json evaluation_json(const Options& options, const evaluate::Evaluation& evaluation,
                             const std::vector<evaluate::Summary>& summaries,
                             const std::vector<evaluate::Comparison>& comparisons) {
  report::Json made = report::document("evaluate");
  made["plant"] = options.scenarios.empty() ? "truth curves of measured data" : "twin";
  made["files"] = report::Json::array();
  for (const std::string& file : options.curves) made["files"].push_back(report::text(file));
  const Objective& objective = evaluation.options.objective;
  made["alpha"] = objective.alpha ? report::number(*objective.alpha) : report::Json(nullptr);
  made["max_loss_fraction"] =
      objective.max_loss_fraction ? report::number(*objective.max_loss_fraction) : report::Json(nullptr);
  made["seeds"] = options.seeds;
  made["first_seed"] = options.seed;
  made["duration_s"] = report::number(evaluation.options.duration.value());
  made["noise_fraction"] = report::number(evaluation.options.noise.throughput);
  made["drift_fraction"] = report::number(evaluation.options.noise.drift);
  const Rates& rates = evaluation.options.rates;
  made["other_power_per_gpu_w"] = report::number(rates.other_power_per_gpu.value());
  made["price_per_kwh"] = rates.price_per_kwh > 0 ? report::number(rates.price_per_kwh) : report::Json(nullptr);
  made["gpu_hour_price"] = rates.gpu_hour_price > 0 ? report::number(rates.gpu_hour_price) : report::Json(nullptr);
  made["currency"] = report::text(rates.currency);
  made["policies"] = report::Json::array();
  for (const evaluate::Summary& s : summaries) made["policies"].push_back(to_json(s));
  made["comparisons"] = report::Json::array();
  for (const evaluate::Comparison& c : comparisons) {
    report::Json one = report::Json::object();
    one["policy"] = report::text(c.policy);
    one["other"] = report::text(c.other);
    one["other_knows"] = c.other_hindsight ? "hindsight" : "causal";
    one["ahead_fraction"] = report::number(c.ahead_fraction);
    one["saved_ratio"] = report::number(c.pooled_ratio);
    one["clearly_worse_fraction"] = report::number(c.clearly_worse_fraction);
    made["comparisons"].push_back(std::move(one));
  }
  made["curves"] = report::Json::array();
  for (const evaluate::CurveInfo& curve : evaluation.curves) {
    report::Json one = report::Json::object();
    one["name"] = report::text(curve.name);
    one["network"] = report::text(curve.network);
    one["scenario_sha256"] = curve.hash.empty() ? report::Json(nullptr) : report::text(curve.hash);
    one["best_mix_saved_fraction"] = report::number(curve.mix.saved_fraction);
    one["best_static_saved_fraction"] = report::number(curve.fixed.saved_fraction);
    one["binds"] = curve.mix.binds;
    made["curves"].push_back(std::move(one));
  }
  made["runs"] = scores_json(evaluation);
  return made;
}

/// Mean saving of a policy on each curve, against what hindsight saves there.
report::Plot saved_plot(const evaluate::Evaluation& evaluation) {
  report::Plot plot;
  plot.title = "Saved on each plant, against the best mix in hindsight";
  plot.description = "One point a plant and policy, mean over seeds; on the diagonal nothing is left to save";
  plot.x = {"saved by the best mix", "%", report::AxisKind::linear, true};
  plot.y = {"saved", "%", report::AxisKind::linear, true};
  report::PlotLine diagonal{.name = "the best mix", .points = {{0, 0}}, .dashed = true};
  double most = 0;
  for (const evaluate::PolicyScores& policy : evaluation.policies) {
    if (policy.policy == "none" || policy.policy == "oracle") continue;
    std::vector<RunningStats> saved(evaluation.curves.size());
    for (const evaluate::Score& score : policy.scores) saved[score.curve].add(score.saved_fraction);
    report::PlotLine line{.name = policy.policy, .kind = report::LineKind::points, .points = {}};
    for (std::size_t i = 0; i < saved.size(); ++i) {
      line.points.push_back({evaluation.curves[i].mix.saved_fraction * 100, saved[i].mean() * 100});
      most = std::max(most, line.points.back().x);
    }
    std::sort(line.points.begin(), line.points.end(),
              [](const report::PlotPoint& a, const report::PlotPoint& b) { return a.x < b.x; });
    plot.lines.push_back(std::move(line));
  }
  diagonal.points.push_back({most, most});
  plot.lines.push_back(std::move(diagonal));
  return plot;
}

report::Table plants_table(const evaluate::Evaluation& evaluation) {
  using report::Align;
  report::Table table{.caption = "The plants, and what hindsight saves on them",
                      .columns = {{"plant", Align::left},
                                  {"best mix", Align::right},
                                  {"best static limit", Align::right},
                                  {"bound binds", Align::left}},
                      .rows = {}};
  for (const evaluate::CurveInfo& curve : evaluation.curves) {
    table.rows.push_back({curve.name, format_percent(curve.mix.saved_fraction),
                          format_percent(curve.fixed.saved_fraction), curve.mix.binds ? "yes" : "no"});
  }
  return table;
}

Result<> run(const Options& options, Context& context) {
  if (options.curves.empty() == options.scenarios.empty()) {
    return fail(ErrorCode::input, "one of --curves and --scenario is needed, and only one", {},
                "give either --curves FILE or --scenario NAME");
  }
  FLYBALL_TRY(check_report_path(options.report));
  std::vector<curve::MeasuredCurve> curves;
  if (options.scenarios.empty()) {
    FLYBALL_ASSIGN(curves, load(options));
  }
  evaluate::Options how;
  how.policies = options.policies;
  FLYBALL_ASSIGN(how.objective, parse_objective(options.objective));
  FLYBALL_ASSIGN(const Settings settings, load_settings(context));
  how.rates = settings.rates;
  how.seeds = options.seeds;
  how.first_seed = options.seed;
  FLYBALL_ASSIGN(how.noise.throughput, parse_fraction(options.noise));
  FLYBALL_ASSIGN(how.noise.drift, parse_fraction(options.drift));
  if (how.noise.throughput < 0 || how.noise.throughput > 0.2 || how.noise.drift < 0 || how.noise.drift > 0.2) {
    return fail(ErrorCode::input, "a noise is a fraction from 0 to 0.2", "--noise or --drift", "give 0.003, or 1%");
  }
  if (!options.set.empty() && options.scenarios.empty()) {
    return fail(ErrorCode::input, "only scenarios have parameters", "--set", "leave it out with --curves");
  }
  FLYBALL_ASSIGN(how.duration, parse_duration(options.duration));
  const StopSignal signal;
  how.stop = [&signal] { return signal.received(); };
  Progress progress(context.options, context.clock);
  how.progress = [&](double fraction) { progress.show(fmt::format("evaluating: {:.0f} %", fraction * 100)); };
  const bool on_twin = !options.scenarios.empty();
  std::vector<evaluate::Subject> subjects;
  if (on_twin) {
    FLYBALL_ASSIGN(subjects, load_scenarios(options, context));
  }
  const auto evaluation = on_twin ? evaluate::evaluate(subjects, how) : evaluate::evaluate_curves(curves, how);
  progress.clear();
  if (!evaluation) return fail(evaluation.error());
  const auto summaries = evaluate::summarize(*evaluation);
  const auto comparisons = evaluate::compare(*evaluation, "model");
  if (!options.report.empty()) {
    report::HtmlPage page("Policies side by side", objective_text(how.objective));
    page.table(summary_table(summaries, *evaluation, on_twin)).table(worth_table(summaries, how.rates));
    if (!comparisons.empty()) page.table(comparison_table(comparisons));
    page.plot(saved_plot(*evaluation)).table(plants_table(*evaluation));
    FLYBALL_TRY(context.files.write_atomically(options.report, page.page()));
  }
  if (context.options.json) {
    return context.out.write(report::dump(evaluation_json(options, *evaluation, summaries, comparisons)));
  }
  std::string text = report::to_text(summary_table(summaries, *evaluation, on_twin));
  text += '\n' + report::to_text(worth_table(summaries, how.rates));
  if (!comparisons.empty()) text += '\n' + report::to_text(comparison_table(comparisons));
  return context.out.write(text);
}

}  // namespace

void add_evaluate(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "evaluate",
       .summary = "Compare policies on measured curves, with their counterfactuals and with hindsight",
       .examples = "  flyball evaluate --curves curves.csv --policies none,static,sweep,model,oracle --max-loss 0.012\n"
                   "  flyball evaluate --curves curves.csv --noise 0.01 --seeds 10 --json\n"
                   "  flyball evaluate --scenario v100-bert --policies model,oracle"},
      [options](Context& context) { return run(*options, context); });
  command.add_option("--curves", options->curves, "CSV files as `flyball fit` reads them")
      ->type_name("FILE")
      ->delimiter(',');
  command.add_option("--scenario", options->scenarios, "Scenarios of the twin in place of curves")
      ->type_name("NAME")
      ->delimiter(',');
  command.add_option("--set", options->set, "Change a parameter of the scenarios; may be given again")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  command.add_option("--board", options->board, "Name of the GPU where the file has none")->type_name("NAME");
  command.add_option("--policies", options->policies, "See flyball policy list; `static` and `oracle` are hindsight")
      ->type_name("NAME,…")
      ->delimiter(',')
      ->capture_default_str();
  add_objective(command, options->objective);
  command.add_option("--seeds", options->seeds, "Runs of each policy on each curve")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_seed(command, options->seed, "The first of them");
  command.add_option("--noise", options->noise, "Of throughput in 10 s, white; on curves")
      ->type_name("FRACTION")
      ->capture_default_str();
  command.add_option("--drift", options->drift, "Of throughput, slow (1 h); on curves")
      ->type_name("FRACTION")
      ->capture_default_str();
  command.add_option("--duration", options->duration, "Of each run")->type_name("TIME")->capture_default_str();
  command.add_option("--report", options->report, "Also write a page with tables and a plot")->type_name("FILE");
}

}  // namespace flyball::cli
