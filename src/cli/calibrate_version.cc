#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/version.h"
#include "cli/calibrate.h"
#include "cli/kept_version.h"
#include "cli/run.h"
#include "facility/phase_library.h"
#include "ledger/ledger.h"

namespace flyball::cli {
namespace {

std::string line_of(std::string_view text, std::size_t number) {
  for (; number > 0 && !text.empty(); --number) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return std::string(text.substr(0, text.find('\n')));
}

/// The delay that a version was learned with: the first number of the line that begins with its name.
std::optional<Seconds> delay_of(std::string_view content) {
  constexpr std::string_view kName = "\ndelay_s ";
  const auto found = content.find(kName);
  if (found == content.npos) return std::nullopt;
  const std::string line = line_of(content.substr(found + 1), 0);
  for (const std::string_view word : split(line, ' '))
    if (const auto value = parse_double(word)) return Seconds(*value);
  return std::nullopt;
}

/// Why the same inputs made another content.
std::string difference(const ledger::BaselineRow& kept, const std::string& content) {
  const auto was = delay_of(kept.content), is = delay_of(content);
  if (was && is && *was != *is) return fmt::format("--delay differs: it was {}, this is {}", format(*was), format(*is));
  if (kept.version != version())
    return fmt::format("the inputs are the same, and the program differs: it was {}, this is {}", kept.version,
                       version());
  std::size_t line = 0;
  while (line_of(kept.content, line) == line_of(content, line) && !line_of(content, line).empty()) ++line;
  return fmt::format(
      "the inputs are the same, and an option, the program's build or the machine differs: it was '{}', "
      "this is '{}'",
      line_of(kept.content, line), line_of(content, line));
}

}  // namespace

Result<std::optional<KeptVersion>> keep_version(const CalibrateOptions& options, const Learned& learned,
                                                Context& context) {
  if (options.keep.empty() && options.reproduce.empty()) return std::optional<KeptVersion>();
  if (!options.keep.empty() && !options.reproduce.empty())
    return fail(ErrorCode::input, "--keep and --reproduce are given", {}, "give one of the two");
  const std::string& inputs = learned.inputs_hash;
  FLYBALL_ASSIGN(const Settings settings, load_settings(context));
  FLYBALL_ASSIGN(auto ledger, open_ledger(context, ledger_path_of(settings.run.state_dir)));
  if (!options.reproduce.empty()) {
    FLYBALL_ASSIGN(const ledger::BaselineRow kept, kept_version(ledger, options.reproduce));
    const auto again = facility::version_of(learned.content, inputs, kept.parent, kept.reason, kept.valid_from);
    if (again.hash == kept.hash) return KeptVersion{kept.hash, kept.parent, inputs, true, false};
    return fail(ErrorCode::failed,
                fmt::format("this makes {} and not {}: {}", again.hash.substr(0, 12), kept.hash.substr(0, 12),
                            inputs != kept.inputs_hash ? "the inputs are others" : difference(kept, again.content)),
                "--reproduce", "give the files and options that it was made of");
  }
  FLYBALL_ASSIGN(const auto before, ledger.baselines(learned.subject, 1));
  const std::string parent = before.empty() ? std::string() : before.front().hash;
  const auto made = facility::version_of(learned.content, inputs, parent, options.keep, learned.valid_from);
  if (!context.options.dry_run)
    FLYBALL_TRY(ledger.add_baseline({made.hash, parent, inputs, learned.subject, options.keep, std::string(version()),
                                     fmt::format("uid {}", ::getuid()), context.clock.wall(), learned.valid_from,
                                     made.content}));
  return KeptVersion{made.hash, parent, inputs, false, context.options.dry_run};
}

std::string version_line(const std::optional<KeptVersion>& version) {
  if (!version) return {};
  const char* done = version->reproduced ? "Made again" : version->only_said ? "Would be kept" : "Kept";
  return fmt::format("\n{}: version {}, inputs {}, parent {}\n", done, version->hash.substr(0, 12),
                     version->inputs_hash.substr(0, 12),
                     version->parent.empty() ? "none" : version->parent.substr(0, 12));
}

report::Json version_json(const std::optional<KeptVersion>& version) {
  if (!version) return nullptr;
  return {{"hash", version->hash},
          {"parent", version->parent.empty() ? report::Json(nullptr) : report::Json(version->parent)},
          {"inputs_hash", version->inputs_hash},
          {"kept", !version->only_said},
          {"reproduced", version->reproduced}};
}

report::Json fit_document(const std::string& kind, const std::string& format, const CalibrateOptions& options,
                          bool on_training, Seconds delay) {
  report::Json json = report::document("calibrate");
  json["kind"] = kind;
  json["format"] = report::text(format);
  json["train"] = report::text(options.train);
  json["evaluate"] = report::Json::array();
  for (const std::string& file : options.evaluate) json["evaluate"].push_back(report::text(file));
  json["held_out"] = on_training ? "second half of the training" : "evaluation files";
  json["delay_s"] = delay.value();
  return json;
}

}  // namespace flyball::cli
