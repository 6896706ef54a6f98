#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "core/settings.h"
#include "guard/audit_log.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string file;
  std::string head;
};

std::string json_of(const std::string& path, const guard::AuditVerdict& verdict) {
  nlohmann::ordered_json json;
  json["schema"] = "flyball.audit_verify/1";
  json["file"] = path;
  json["sound"] = verdict.sound();
  json["first"] = verdict.first;
  json["lines"] = verdict.lines;
  json["unsealed"] = verdict.unsealed;
  json["head"] = verdict.head.hash;
  json["head_number"] = verdict.head.count;
  json["problems"] = nlohmann::ordered_json::array();
  for (const guard::AuditProblem& problem : verdict.problems) {
    json["problems"].push_back(
        {{"fault", guard::to_string(problem.fault)}, {"line", problem.line}, {"what", problem.text}});
  }
  return json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string text_of(const std::string& path, const guard::AuditVerdict& verdict) {
  std::string text = fmt::format("{}: {} line(s) chained from number {}, head {}:{}\n", path, verdict.lines,
                                 verdict.first, verdict.head.count, verdict.head.hash);
  if (verdict.unsealed > 0)
    text += fmt::format("{} line(s) behind the head file, written before a crash\n", verdict.unsealed);
  for (const guard::AuditProblem& problem : verdict.problems) {
    text += fmt::format("line {}: {}: {}\n", problem.line, guard::to_string(problem.fault), problem.text);
  }
  return text;
}

Result<> audit_verify(const Options& options, Context& context) {
  std::string path = options.file;
  if (path.empty()) {
    FLYBALL_ASSIGN(const Settings settings, load_settings(context));
    path = settings.guard.audit;
  }
  std::optional<guard::AuditHead> kept;
  if (!options.head.empty()) {
    FLYBALL_ASSIGN(kept, guard::parse_audit_head(options.head));
  }
  FLYBALL_ASSIGN(const guard::AuditVerdict verdict, guard::verify_audit_files(context.files, path, kept));
  FLYBALL_TRY(context.out.write(context.options.json ? json_of(path, verdict) : text_of(path, verdict)));
  if (verdict.sound()) return {};
  FLYBALL_TRY(context.out.commit());
  return fail(
      ErrorCode::failed,
      fmt::format("{} problem(s), the first in line {}", verdict.problems.size(), verdict.problems.front().line), path,
      "keep both files and compare with a copy");
}

}  // namespace

void add_audit_verify(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add({.name = "audit verify",
                                    .summary = "Check that the guard's log was not edited, cut or reordered",
                                    .examples = "  flyball audit verify\n"
                                                "  flyball audit verify --head 1234:5be0…   a head kept elsewhere"},
                                   [options](Context& context) { return audit_verify(*options, context); });
  command.add_option("FILE", options->file, "The log; not given = as configured");
  command.add_option("--head", options->head, "NUMBER:HASH of a line that an earlier verification printed");
}

}  // namespace flyball::cli
