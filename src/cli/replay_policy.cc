#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/objective.h"
#include "cli/progress.h"
#include "cli/replay.h"
#include "cli/signals.h"
#include "control/replay_run.h"
#include "report/account_view.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

constexpr std::string_view kNoSaving =
    "What the policy would have proposed. Nothing was set: what it saw followed the limits in force then, so this is "
    "neither a saving nor a loss.";

report::Json limit_json(const std::optional<Milliwatts>& limit) {
  return limit ? report::number(limit->watts().value()) : report::Json(nullptr);
}

report::Json wish_json(const control::ReplayedWish& wish) {
  report::Json one = report::Json::object();
  one["decision"] = wish.number;
  one["at"] = report::time(wish.at);
  one["device"] = report::text(wish.device.text());
  one["proposed_limit_w"] = limit_json(wish.power_limit);
  one["within_range_limit_w"] = limit_json(wish.allowed);
  one["proposed_clock_low_hz"] =
      wish.locked_clocks ? report::number(wish.locked_clocks->low.value()) : report::Json(nullptr);
  one["proposed_clock_high_hz"] =
      wish.locked_clocks ? report::number(wish.locked_clocks->high.value()) : report::Json(nullptr);
  one["in_force_limit_w"] = wish.in_force ? report::number((*wish.in_force).watts().value()) : report::Json(nullptr);
  one["reason"] = report::text(wish.reason);
  return one;
}

report::Json json_of(const std::string& file, const control::ReplayRun& run) {
  report::Json made = report::document("replay_run");
  made["file"] = report::text(file);
  made["policy"] = report::text(run.policy);
  made["alpha"] = run.objective.alpha ? report::number(*run.objective.alpha) : report::Json(nullptr);
  made["max_loss_fraction"] =
      run.objective.max_loss_fraction ? report::number(*run.objective.max_loss_fraction) : report::Json(nullptr);
  made["seed"] = run.seed;
  made["start"] = report::time(run.span.start);
  made["stop"] = report::time(run.span.stop);
  made["poll_s"] = report::number(run.poll.value());
  made["decision_s"] = report::number(run.decision.value());
  made["polls"] = run.polls;
  made["decisions"] = run.decisions;
  made["decisions_frozen"] = run.frozen;
  made["interrupted"] = run.interrupted;
  made["readings_rejected"] = run.rejected.total();
  made["basis"] = std::string(kNoSaving);
  made["saved_fraction"] = nullptr;
  made["writes"] = 0;
  made["recorded"] = report::to_json(run.account);
  made["proposals_changed"] = run.wishes_changed;
  made["proposals"] = report::Json::array();
  for (const control::ReplayedWish& wish : run.wishes) made["proposals"].push_back(wish_json(wish));
  made["decisions_sha256"] = run.digest;
  made["audit"] = nullptr;
  if (run.audit) {
    report::Json audit = report::Json::object();
    audit["decisions_recorded"] = run.audit->recorded;
    audit["decisions_identical"] = run.audit->identical;
    audit["first_difference"] =
        run.audit->first_difference.empty() ? report::Json(nullptr) : report::text(run.audit->first_difference);
    made["audit"] = std::move(audit);
  }
  made["findings"] = report::Json::array();
  for (const Finding& f : run.findings) {
    made["findings"].push_back({{"severity", std::string(to_string(f.severity))},
                                {"code", report::text(f.code)},
                                {"device", report::text(f.device.text())},
                                {"what", report::text(f.what)},
                                {"since", report::time(f.since)}});
  }
  return made;
}

std::string wish_text(const control::ReplayedWish& wish) {
  std::string text;
  if (wish.power_limit) text = format(*wish.power_limit);
  if (wish.allowed && wish.allowed != wish.power_limit)
    text += fmt::format(" (the board takes {})", format(*wish.allowed));
  if (wish.locked_clocks) {
    text += fmt::format("{}clocks {} to {}", text.empty() ? "" : ", ", format(wish.locked_clocks->low),
                        format(wish.locked_clocks->high));
  }
  return text;
}

std::string audit_text(const control::ReplayRun& run) {
  if (!run.audit) return {};
  if (run.audit->first_difference.empty() && run.audit->identical == run.audit->recorded)
    return fmt::format("Audit: all {} recorded decisions came out again, to the last bit of what was seen and asked\n",
                       run.audit->recorded);
  return fmt::format("Audit: {} of {} recorded decisions came out again. The first that did not: {}\n",
                     run.audit->identical, run.audit->recorded, run.audit->first_difference);
}

std::string text_of(const std::string& file, const control::ReplayRun& run) {
  constexpr std::size_t kShown = 40;
  report::Table facts;
  facts.columns = {{""}, {""}};
  facts.rows = {
      {"Recording", fmt::format("{}, {} from {}", file, format(run.span.length()), format_rfc3339(run.span.start))},
      {"Policy", fmt::format("{}, seed {}", run.policy, run.seed)},
      {"Objective", objective_text(run.objective)},
      {"Decisions", fmt::format("{} every {}, {} frozen", run.decisions, format(run.decision), run.frozen)},
      {"Energy as recorded", fmt::format("{}, {} of the time measured", format(run.account.energy),
                                         format_percent(run.account.coverage_fraction))},
      {"Decisions' SHA-256", run.digest}};
  std::string text = std::string(kNoSaving) + "\n\n" + report::to_text(facts) + '\n';
  report::Table wishes;
  wishes.caption = "Proposals, where they changed";
  wishes.columns = {{"At"}, {"Device"}, {"Would have proposed"}, {"In force then"}, {"Reason"}};
  for (const control::ReplayedWish& wish : run.wishes) {
    if (wishes.rows.size() == kShown) break;
    wishes.rows.push_back({format_rfc3339(wish.at), wish.device.text(), wish_text(wish),
                           wish.in_force ? format(*wish.in_force) : "–", wish.reason});
  }
  text += run.wishes_changed == 0 ? "The policy proposed no change\n" : report::to_text(wishes);
  if (run.wishes_changed > kShown)
    text += fmt::format("… and {} changes more (--json lists them)\n", run.wishes_changed - kShown);
  for (const Finding& f : run.findings)
    text += fmt::format("{} {}: {}{}{}\n", format_rfc3339(f.since), to_string(f.severity), f.device.text(),
                        f.device.empty() ? "" : ": ", f.what);
  if (run.interrupted) text += "Ended early by a signal\n";
  return text + audit_text(run);
}

}  // namespace

Result<> replay_with_policy(const ReplayOptions& options, Context& context) {
  FLYBALL_ASSIGN(const series::ReadOptions how, replay_reading(options));
  control::ReplayRunOptions asked;
  asked.policy = options.policy;
  asked.devices = context.options.gpus;
  const bool as_recorded = options.policy == "recorded";
  if (as_recorded && (options.objective.alpha || !options.objective.max_loss.empty() || options.seed))
    return fail(ErrorCode::input, "with --policy recorded all is as it was recorded", {},
                "leave out --alpha, --max-loss and --seed, or name the policy");
  FLYBALL_ASSIGN(asked.objective, parse_objective(options.objective));
  asked.seed = options.seed.value_or(1);
  if (!options.decision.empty()) {
    FLYBALL_ASSIGN(const Seconds decision, parse_seconds(options.decision));
    if (decision < Seconds(0.5) || decision > Seconds(86400))
      return fail(ErrorCode::input, "not between 0.5 s and a day: " + options.decision, "--decision");
    asked.decision = decision;
  }
  const StopSignal stop;
  Progress progress(context.options, context.clock);
  std::uint64_t polls = 0;
  asked.stop = [&] {
    if (++polls % 10'000 == 0) progress.show(fmt::format("replaying: {} polls", polls));
    return stop.received();
  };
  const auto run = control::replay_run([&] { return open_bytes(options.file); }, options.file, how, asked);
  progress.clear();
  if (!run) return fail(run.error());
  FLYBALL_TRY(context.out.write(context.options.json ? report::dump(json_of(options.file, *run))
                                                     : text_of(options.file, *run)));
  FLYBALL_TRY(context.out.commit());
  if (run->audit && !run->interrupted && run->audit->identical != run->audit->recorded)
    return fail(ErrorCode::failed, "the recorded decisions did not all come out again", options.file,
                "see the audit in the result");
  return {};
}

}  // namespace flyball::cli
