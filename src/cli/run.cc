#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/presets.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/app.h"
#include "cli/arguments.h"
#include "cli/objective.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/signals.h"
#include "control/virtual_run.h"
#include "evaluate/oracle.h"
#include "evaluate/twin_plant.h"
#include "report/run_report.h"
#include "report/table.h"
#include "series/accounting.h"
#include "series/recording_writer.h"
#include "twin/scenario.h"

namespace flyball::cli {
namespace {

constexpr const char* kDefaultDuration = "6h";
/// Simulated runs begin at a fixed instant, so that same seed means same bytes.
constexpr WallTime kSimulatedStart(1'767'225'600'000'000'000);

/// All that is needed to repeat the run.
std::string arguments_json(const RunOptions& options, const twin::Scenario& scenario, const Objective& objective,
                           Seconds duration, const std::optional<loop::SwitchbackOptions>& switchback) {
  report::Json made = report::Json::object();
  made["source"] = options.source;
  made["scenario"] = scenario.name;
  made["policy"] = options.policy;
  made["alpha"] = objective.alpha ? report::number(*objective.alpha) : report::Json(nullptr);
  made["max_loss_fraction"] =
      objective.max_loss_fraction ? report::number(*objective.max_loss_fraction) : report::Json(nullptr);
  made["duration_s"] = report::number(duration.value());
  made["seed"] = options.seed;
  made["budget_w"] = options.budget ? report::number(options.budget->value()) : report::Json(nullptr);
  made["observe_only"] = options.observe_only;
  made["stage"] = options.stage;
  made["switchback_share_fraction"] = switchback ? report::number(switchback->share) : report::Json(nullptr);
  made["switchback_block_s"] = switchback ? report::number(switchback->block.value()) : report::Json(nullptr);
  for (const twin::ParameterInfo& p : twin::list_parameters(scenario.parameters)) made["parameters"][p.key] = p.value;
  return report::dump_line(made);
}

Result<> say_plan(const RunOptions& options, const twin::Scenario& scenario, const Objective& objective,
                  Seconds duration, const std::string& ledger_path, Context& context) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"Plant", scenario.plant()},
      {"Policy", options.observe_only ? "none (observe only)" : options.policy},
      {"Objective", objective_text(objective)},
      {"Duration", format(duration) + " simulated"},
      {"Seed", std::to_string(options.seed)},
      {"Ledger", "would be written: " + ledger_path}};
  if (options.budget) rows.emplace_back("Budget", format(*options.budget) + " for all limits together");
  if (!options.record.empty()) rows.emplace_back("Recording", "would be written: " + options.record);
  if (!options.report.empty()) rows.emplace_back("Report", "would be written: " + options.report);
  return cli::say_plan(context, "run", rows);
}

}  // namespace

std::string ledger_path_of(const std::string& state_dir) { return state_dir + "/ledger.db"; }

Result<std::unique_ptr<series::RecordingWriter>> open_recording(const RunOptions& options, Context& context,
                                                                const series::RecordingSession& session) {
  if (options.record.empty()) return nullptr;
  if (context.files.exists(options.record))
    return fail(ErrorCode::input, "exists already", options.record, "name another file");
  return series::RecordingWriter::open(context.files, options.record, session);
}

Result<ledger::Ledger> open_ledger(Context& context, const std::string& path) {
  FLYBALL_TRY(context.files.make_folders(std::filesystem::path(path).parent_path().string()));
  return ledger::Ledger::open(path);
}

namespace {

Result<> write_result(const RunOptions& options, const Rates& rates, const control::RunRecord& run,
                      const std::string& ledger_path, const Objective& objective, Context& context) {
  FLYBALL_ASSIGN(auto relief, read_relief(options.relief, ledger_path));
  const report::RunReport shown{run.result, run.series, run.phases, {}, rates, std::move(relief)};
  // A page that cannot be written costs no result.
  Result<> page;
  if (!options.report.empty()) page = context.files.write_atomically(options.report, report::run_html(shown));
  if (context.options.json) {
    report::Json made = report::run_json(shown);
    made["decisions"] = run.decisions;
    made["decisions_frozen"] = run.frozen;
    made["readings_rejected"] = run.rejected.total();
    made["interrupted"] = run.interrupted;
    made["recording"] = options.record.empty() ? report::Json(nullptr) : report::text(options.record);
    made["ledger"] = run.ledger_run ? report::text(ledger_path) : report::Json(nullptr);
    made["ledger_run"] = run.ledger_run ? report::Json(*run.ledger_run) : report::Json(nullptr);
    FLYBALL_TRY(context.out.write(report::dump(made)));
    return page;
  }
  std::string text = report::run_text(shown) + '\n';
  if (run.interrupted) text += "Ended early by a signal after " + format(run.result.account.duration) + '\n';
  if (!options.observe_only) text += "Objective: " + objective_text(objective) + '\n';
  if (run.ledger_run) text += fmt::format("Ledger: {}, run {}\n", ledger_path, *run.ledger_run);
  if (!options.record.empty()) text += "Recording: " + options.record + '\n';
  if (!options.report.empty() && page) text += "Report: " + options.report + '\n';
  FLYBALL_TRY(context.out.write(text));
  return page;
}

/// Lost more than was allowed, as far as that is known.
void check_bound(RunResult& result, const Objective& objective) {
  if (!objective.max_loss_fraction || !result.loss_fraction) return;
  if (result.loss_fraction->low <= *objective.max_loss_fraction + 1e-9) return;
  Finding finding;
  finding.severity = Severity::warning;
  finding.code = "loss.over_bound";
  finding.what = fmt::format("{} of the tokens were lost where at most {} was asked for",
                             format_percent(result.loss_fraction->value), format_percent(*objective.max_loss_fraction));
  finding.remedy = "a policy that minds the bound, or a longer run: the bound is over the whole run";
  finding.since = result.started;
  result.findings.push_back(std::move(finding));
}

void price(Account& account, const Rates& rates) {
  const double kwh = account.energy.value() / kJoulesPerKilowattHour;
  account.cost = kwh * rates.price_per_kwh;
  account.carbon_g = kwh * rates.carbon_g_per_kwh;
}

}  // namespace

Result<std::optional<loop::SwitchbackOptions>> switchback_of(const RunOptions& options, double default_share) {
  using experiment::Schedule;
  double share = options.budget ? 0 : default_share;  // limits as found would be over the budget
  if (!options.switchback_share.empty()) {
    auto given = parse_fraction(options.switchback_share);
    if (!given) {
      given.error().where = "--switchback-share";
      return fail(std::move(given.error()));
    }
    share = *given;
  }
  const bool canary = options.stage == "canary";
  if (share == 0 && canary) {
    return fail(ErrorCode::input, "a canary without blocks would never control", "--switchback-share",
                fmt::format("give {} to {}", Schedule::kLeastShare, Schedule::kMostShare));
  }
  if (share == 0 || options.observe_only) return std::nullopt;
  if (share < Schedule::kLeastShare || share > Schedule::kMostShare) {
    return fail(ErrorCode::input, fmt::format("{} is outside its range", share), "--switchback-share",
                fmt::format("give {} to {}, or 0 for none", Schedule::kLeastShare, Schedule::kMostShare));
  }
  Seconds block = Schedule::kBlock;
  if (!options.switchback_block.empty()) {
    constexpr Seconds kShortest{4}, kLongest{3600};  // a second of settling thrice and one for the steps; drift
    FLYBALL_ASSIGN(block, parse_duration(options.switchback_block, "--switchback-block"));
    if (block < kShortest || block > kLongest) {
      return fail(ErrorCode::input, options.switchback_block + " is outside its range", "--switchback-block",
                  fmt::format("give {} to {}", format(kShortest), format(kLongest)));
    }
  }
  return loop::SwitchbackOptions{
      .share = share, .rare = canary ? experiment::Arm::control : experiment::Arm::original, .block = block};
}

Result<> finish_run(const RunOptions& options, const Rates& rates, control::RunRecord& run,
                    const std::optional<Error>& unopened, const std::string& ledger_path, const Objective& objective,
                    Context& context) {
  price(run.result.account, rates);
  if (run.result.counterfactual) price(*run.result.counterfactual, rates);
  if (run.result.saved_fraction && run.result.loss_fraction && !options.observe_only) {
    run.result.worth = series::worth(*run.result.saved_fraction, *run.result.loss_fraction, run.result.account, rates,
                                     static_cast<double>(run.result.gpus.size()));
  }
  // Under a budget the objective is against its even shares; the result is against the limits as found.
  if (!options.observe_only && !options.budget) check_bound(run.result, objective);
  if (unopened) {
    run.degraded = true;
    run.result.findings.push_back({Severity::warning,
                                   "ledger.not_opened",
                                   {},
                                   unopened->message(),
                                   "the result is whole; it is only not kept",
                                   context.clock.wall(),
                                   1});
  }
  FLYBALL_TRY(write_result(options, rates, run, ledger_path, objective, context));
  FLYBALL_TRY(context.out.commit());
  if (run.degraded) return fail(ErrorCode::degraded, "the run is done, but see its findings");
  return {};
}

namespace {

constexpr std::string_view kOracle = "oracle";

/// The best mix of two limits, from the twin's own curve: what a policy could do that knew it beforehand.
Result<std::string> hindsight(const twin::Scenario& scenario, std::uint64_t seed, const Objective& objective) {
  FLYBALL_ASSIGN(const evaluate::Subject subject, evaluate::twin_subject(scenario, seed));
  const evaluate::Ideal ideal = evaluate::best_mix(subject.truth, objective);
  return fmt::format("mix:{}W,{}W,{:.4f}", format_exact(ideal.first.value()), format_exact(ideal.second.value()),
                     ideal.share_second);
}

Result<> run_on_twin(const RunOptions& options, const Settings& settings, const Objective& objective,
                     Context& context) {
  FLYBALL_ASSIGN(const Seconds duration,
                 parse_duration(options.duration.empty() ? kDefaultDuration : options.duration));
  FLYBALL_ASSIGN(const std::string presets, presets_folder());
  FLYBALL_ASSIGN(twin::Scenario scenario, twin::load_scenario(context.files, presets, options.scenario));
  FLYBALL_TRY(twin::override_parameters(scenario, options.set));
  scenario.parameters.seed = options.seed;
  const std::string ledger_path = ledger_path_of(settings.run.state_dir);
  if (context.options.dry_run) return say_plan(options, scenario, objective, duration, ledger_path, context);

  control::VirtualRunOptions how;
  how.build = [&scenario] { return scenario.build(); };
  how.plant = scenario.plant();
  how.policy = options.policy;
  how.objective = objective;
  how.budget = options.budget;
  how.duration = duration;
  how.seed = options.seed;
  how.started = kSimulatedStart;
  how.recorded = context.clock.wall();
  how.devices = context.options.gpus;
  how.observe_only = options.observe_only;
  how.poll = settings.run.sample;
  how.decision = settings.run.interval;
  FLYBALL_ASSIGN(how.switchback, switchback_of(options, settings.run.switchback_share));
  how.arguments = arguments_json(options, scenario, objective, duration, how.switchback);
  if (options.policy == kOracle) {
    if (options.budget) return fail(ErrorCode::unsupported, "hindsight knows no budget", "--policy oracle");
    FLYBALL_ASSIGN(how.policy, hindsight(scenario, options.seed, objective));
  }
  const StopSignal signal;
  how.stop = [&signal] { return signal.received(); };
  FLYBALL_ASSIGN(const auto recording,
                 open_recording(options, context,
                                {kSimulatedStart, MonoTime(), "", fmt::format("flyball {}", version()),
                                 fmt::format("{} seed {}", how.plant, options.seed), loop::Options().poll}));
  how.recording = recording.get();
  auto ledger = open_ledger(context, ledger_path);
  Progress progress(context.options, context.clock);
  how.progress = [&](double fraction) {
    progress.show(
        fmt::format("simulating {}, then the same with limits as found: {:.0f} %", format(duration), fraction * 100));
  };
  auto done = control::run_virtual(how, ledger ? &*ledger : nullptr);
  progress.clear();
  if (!done) return fail(std::move(done.error()));
  if (options.policy == kOracle) done->result.policy = "oracle (hindsight), " + how.policy;
  return finish_run(options, settings.rates, *done, ledger ? std::nullopt : std::optional(ledger.error()), ledger_path,
                    objective, context);
}

/// What a meter's budget leaves for the limits of the boards behind it: the guard's own sum (guard/node_budget.h),
/// with nothing measured.
Result<Watts> limits_under(const Budget& budget, const SiteSettings& site) {
  if (!site.node_budget || site.node_budget->meter != budget.meter) {
    return fail(ErrorCode::unsupported, "what is behind the meter " + budget.meter.text() + " is not stated",
                "run.budget",
                "state it in site.node_meter and site.node_limit; or give --budget, for all limits together");
  }
  const NodeBudgetSettings& node = *site.node_budget;
  const Watts supplied = budget.limit / (1 + node.meter_accuracy_fraction) * node.lowest_supply_efficiency;
  if (supplied <= node.non_gpu_maximum) {
    return fail(ErrorCode::refused, "what is not GPUs may draw all of it", "run.budget", "see site.non_gpu_maximum");
  }
  return (supplied - node.non_gpu_maximum) / (1 + node.overshoot_fraction);
}

Result<> fill_in_budget(RunOptions& options, const Settings& settings) {
  if (!options.budget_text.empty()) {
    auto given = parse_watts(options.budget_text);
    if (given && *given <= Watts(0)) given = fail(ErrorCode::input, "a budget must be above 0 W");
    if (!given) {
      given.error().where = "--budget " + options.budget_text;
      return fail(std::move(given.error()));
    }
    options.budget = *given;
  } else if (settings.run.budget && !options.observe_only) {
    FLYBALL_ASSIGN(options.budget, limits_under(*settings.run.budget, settings.site));
  }
  if (options.budget && options.stage == "canary") {
    return fail(ErrorCode::input, "most of a canary is at the limits found, which are over the budget",
                "--stage canary", "leave --budget or the stage out");
  }
  return {};
}

/// What the command line leaves open the configuration says.
Result<> fill_in(RunOptions& options, const Settings& settings) {
  FLYBALL_TRY(fill_in_budget(options, settings));
  if (options.policy.empty()) options.policy = settings.run.policy;
  if (options.duration.empty() && settings.run.duration) {
    options.duration = format_exact(settings.run.duration->value()) + "s";
  }
  return check_report_path(options.report);
}

Result<> run(const RunOptions& given, Context& context) {
  FLYBALL_ASSIGN(const Settings settings, load_settings(context));
  FLYBALL_ASSIGN(Objective objective, parse_objective(given.objective));
  const bool said = given.objective.alpha || !given.objective.max_loss.empty();
  if (!said && (settings.run.objective.alpha || settings.run.objective.max_loss_fraction)) {
    objective = settings.run.objective;
  }
  RunOptions options = given;
  if (options.stage.empty()) options.stage = options.observe_only ? "observe" : "control";
  if (options.observe_only && options.stage != "observe") {
    return fail(ErrorCode::input, "--observe-only and --stage " + options.stage + " are given", {},
                "give one of the two");
  }
  options.observe_only = options.stage == "observe";
  FLYBALL_TRY(fill_in(options, settings));
  // What cannot be read is said before the run, not behind it.
  FLYBALL_TRY(read_relief(options.relief, ledger_path_of(settings.run.state_dir)));
  if (options.source == "twin") return run_on_twin(options, settings, objective, context);
  if (options.source == "nvml") return run_on_machine(options, settings, objective, context);
  return fail(ErrorCode::unsupported, "the source '" + options.source + "' is not there", "--source",
              "use twin or nvml");
}

void add_relief(CLI::App& command, ReliefOptions& options) {
  command.add_option("--relief", options.relief, "What a watt saved here saves again in cooling and delivery")
      ->type_name("SHARE")
      ->check(wrong_if_empty);
  command.add_option("--facility", options.facility, "The same, from this kept baseline of the building")
      ->type_name("HASH")
      ->check(wrong_if_empty);
  command.add_option("--wet-bulb", options.wet_bulb, "and in this air; default: as its days had it")
      ->type_name("TEMPERATURE")
      ->check(wrong_if_empty);
}

}  // namespace

void add_run(Registry& registry) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& command = registry.add(
      {.name = "run",
       .summary = "Control the power limits of a training job and account for what it saves",
       .examples =
           "  flyball run                        six simulated hours of a measured V100 job, at most 1.2 % slower\n"
           "  flyball run --policy static:200W   one limit for the whole run\n"
           "  flyball run --scenario a100-bloom-3b --alpha 3 --report out.html\n"
           "  flyball run --set job.throughput_noise_sd=0.01 --seed 7 --json\n"
           "  flyball run --scenario pretrain-8 --budget 2.4kW   all limits together never above it\n"
           "  flyball run --source nvml --duration 8h      this machine's GPUs, limits set through flyball-guard\n"
           "  flyball run --source nvml --observe-only     the same without setting anything\n"
           "A run on this machine reads --config again on SIGHUP; run.max_loss or run.alpha hold from then on, also "
           "where\n"
           "the command line said another. The twin simulates on measured curves (see flyball scenarios and flyball "
           "policy list). However a run "
           "ends,\n"
           "limits are given back."},
      [options](Context& context) { return run(*options, context); });
  command.add_option("--source", options->source, "Where readings come from: twin, or nvml (this machine)")
      ->capture_default_str();
  command.add_option("--nvml-library", options->nvml_library, "NVIDIA's management library: a file or a name");
  command.add_option("--scenario", options->scenario, "The machine and its job; see flyball scenarios")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--policy", options->policy,
                  "See flyball policy list; on the twin also oracle: hindsight, the best mix of two limits (default: "
                  "run.policy of the configuration, model)")
      ->type_name("NAME");
  add_objective(command, options->objective);
  command
      .add_option("--duration", options->duration, "Of the run: 30min, 6h (default: the twin 6h, else until stopped)")
      ->type_name("TIME");
  add_seed(command, options->seed, "Same seed, same result");
  command
      .add_option(
          "--budget", options->budget_text,
          "For the power limits of all the run's GPUs together: 2.4kW. Divided by need, held from the start and "
          "by the guard after the end")
      ->type_name("POWER");
  command.add_option("--set", options->set, "Change a parameter of the scenario; may be given again")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  command.add_option("--report", options->report, "Also write a page with plots")
      ->type_name("FILE")
      ->check(wrong_if_empty);
  add_relief(command, options->relief);
  command.add_option("--record", options->record, "Also keep every reading and decision, for flyball replay")
      ->type_name("FILE");
  command.add_flag("--observe-only", options->observe_only, "Measure and account, set nothing: --stage observe");
  command
      .add_option("--stage", options->stage,
                  "observe: set nothing; canary: control in few blocks, drawn at random; control (the default): in all "
                  "but few")
      ->check(CLI::IsMember({"observe", "canary", "control"}));
  command
      .add_option("--switchback-share", options->switchback_share,
                  "Share of the time in those few blocks, 0.02 to 0.5, by which the saving is measured; 0: no blocks "
                  "(default 0.05; with --source nvml run.switchback_share)")
      ->type_name("FRACTION");
  command.add_option("--switchback-block", options->switchback_block, "Shortest of those blocks (default 40s)")
      ->type_name("TIME");
}

}  // namespace flyball::cli
