#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/app.h"
#include "core/settings.h"
#include "guard/client.h"

namespace flyball::cli {
namespace {

std::string text_of(const std::vector<guard::RestoreOutcome>& outcomes) {
  if (outcomes.empty()) return "nothing of ours is on any board\n";
  std::string text;
  for (const guard::RestoreOutcome& outcome : outcomes) {
    const char* what = outcome.restored ? "given back" : outcome.left_to_other ? "left as it is" : "NOT given back";
    text += fmt::format("{}: {}", outcome.device.text(), what);
    if (outcome.now.ok()) text += fmt::format(", {} now", format(outcome.now.value));
    text += outcome.reason.empty() ? "\n" : fmt::format(": {}\n", outcome.reason);
  }
  return text;
}

/// What the guard would give back, from what it says of its boards.
Result<std::string> plan_of(const std::string& status) {
  const auto document = nlohmann::json::parse(status, nullptr, false);
  if (!document.is_object() || !document.contains("boards"))
    return fail(ErrorCode::failed, "the guard's status cannot be read", {}, "flyball-guard status shows it as it is");
  std::string text;
  for (const auto& board : document["boards"]) {
    if (!board.value("held", false)) continue;
    text += fmt::format("{}: would be given back", board.value("device", ""));
    if (board["found_mw"].is_number()) text += ", to " + format(Milliwatts(board["found_mw"].get<std::int64_t>()));
    text += "\n";
  }
  return text.empty() ? text_of({}) : text;
}

/// Works without network, agent or state: the guard's socket is all it needs.
Result<> restore(Context& context) {
  FLYBALL_ASSIGN(const Settings settings, load_settings(context));
  FLYBALL_ASSIGN(const auto client, guard::GuardClient::connect(settings.guard.socket));
  std::vector<guard::RestoreOutcome> outcomes;
  if (context.options.dry_run) {
    FLYBALL_ASSIGN(const std::string status, client->status());
    if (context.options.json) return context.out.write(status + "\n");
    FLYBALL_ASSIGN(const std::string plan, plan_of(status));
    return context.out.write(plan);
  }
  FLYBALL_ASSIGN(outcomes, client->restore_all("flyball restore"));
  FLYBALL_TRY(context.out.write(context.options.json ? guard::restore_document(outcomes) : text_of(outcomes)));
  std::string owed;
  for (const guard::RestoreOutcome& outcome : outcomes) {
    if (!outcome.restored && !outcome.left_to_other) owed += " " + outcome.device.text();
  }
  if (owed.empty()) return {};
  FLYBALL_TRY(context.out.commit());
  return fail(ErrorCode::degraded, "not given back:" + owed, {},
              "the guard goes on trying; `flyball-guard status` shows why it fails");
}

}  // namespace

void add_restore(Registry& registry) {
  registry.add(
      {.name = "restore",
       .summary = "Ask the guard to give back all limits now",
       .examples = "  flyball restore\n"
                   "  flyball restore --dry-run     what would be given back; with --json all that the guard says\n\n"
                   "What a budget's safe cap holds stays; its owner, or `sudo flyball-guard restore\n"
                   "--lift-budgets`, releases it. Without a guard: `sudo flyball-guard restore`."},
      restore);
}

}  // namespace flyball::cli
