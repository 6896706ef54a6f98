#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/doctor.h"
#include "guard/client.h"

namespace flyball::cli {
namespace {

/// A guard whose driver hangs answers within its call deadline.
constexpr Seconds kPatience{5};

using nlohmann::json;

Finding finding(Severity severity, std::string code, DeviceId device, std::string what, std::string remedy = {}) {
  Finding made;
  made.severity = severity;
  made.code = std::move(code);
  made.device = std::move(device);
  made.what = std::move(what);
  made.remedy = std::move(remedy);
  return made;
}

/// Fields of a document that another program sent: what is not there, or of another kind, is the fallback.
template <class T>
T field(const json& object, const char* key, T fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->get<bool>() : fallback;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<std::string>() : fallback;
  } else {
    return found->is_number_integer() ? found->get<T>() : fallback;
  }
}

std::string limit_text(const json& board, const char* key) {
  const auto milliwatts = field<std::int64_t>(board, key, 0);
  return milliwatts > 0 ? format(Milliwatts(milliwatts)) : "not known";
}

void note_board(const json& board, std::vector<Finding>& found) {
  const auto id = DeviceId::parse(field<std::string>(board, "device", ""));
  if (!id) return;
  const std::string reason = field<std::string>(board, "reason", "");
  const auto failures = field<std::int64_t>(board, "failures", 0);
  if (field(board, "restoring", false) && failures > 0) {
    found.push_back(finding(Severity::alarm, "guard.not_restored", *id,
                            fmt::format("its limit is not given back after {} tries, {} was found: {}", failures,
                                        limit_text(board, "found_mw"), reason),
                            "the guard goes on trying; mend what the reason says"));
  } else if (failures > 0) {
    found.push_back(finding(Severity::warning, "guard.write_failed", *id,
                            fmt::format("{} writes in a row failed: {}", failures, reason),
                            "the guard goes on trying; mend what the reason says"));
  }
  const std::string state = field<std::string>(board, "state", "ok");
  if (state != "ok") {
    found.push_back(finding(Severity::alarm, "guard.board", *id,
                            fmt::format("the guard finds it {}; it counts at its maximum", state),
                            "look for Xid messages in `dmesg`; drain the node and reset the GPU or reboot"));
  }
  const auto ceiling = field<std::int64_t>(board, "external_limit_mw", 0);
  if (ceiling > 0) {
    found.push_back(
        finding(Severity::warning, "guard.external_limit", *id,
                fmt::format("someone outside the driver holds it at {}, below the {} that the guard set",
                            format(Milliwatts(ceiling)), limit_text(board, "accepted_mw")),
                "look for a power cap in the BMC and at the power supplies; no increase is sent until then"));
  }
  const std::string drift = field<std::string>(board, "drift", "none");
  const bool yielded = field(board, "yielded", false);
  if (drift == "factory_default") {
    found.push_back(
        finding(Severity::warning, "guard.reload", *id,
                fmt::format("the driver was loaded again and forgot the limit: {} now, rewritten {} times{}",
                            limit_text(board, "requested_mw"), field<std::int64_t>(board, "drift_rewrites", 0),
                            yielded ? "; the guard has yielded" : ""),
                "run nvidia-persistenced, so that the driver stays loaded"));
  } else if (drift == "above_request") {
    found.push_back(finding(Severity::alarm, "guard.not_obeyed", *id,
                            fmt::format("the driver says yes and does not obey: {} was asked for, {} is enforced",
                                        limit_text(board, "accepted_mw"), limit_text(board, "enforced_mw")),
                            "update the driver or the board's firmware; until then leave this board unlimited"));
  } else if (drift != "none") {
    found.push_back(finding(
        Severity::warning, "guard.drift", *id,
        fmt::format("its limit was not what the guard had set ({}): {} now, rewritten {} times{}", drift,
                    limit_text(board, "requested_mw"), field<std::int64_t>(board, "drift_rewrites", 0),
                    yielded ? "; the guard has yielded, until the lease ends or guard.drift_quiet passes" : ""),
        "look for another program that writes limits (nvidia-smi in a cron job, DCGM, a site's own unit) and stop it"));
  }
  if (field(board, "parked", false)) {
    found.push_back(finding(Severity::info, "guard.parked", *id,
                            fmt::format("rests at {} since its budget's lease ended; {} was found",
                                        limit_text(board, "requested_mw"), limit_text(board, "found_mw")),
                            "the owner of the budget releases it, or `sudo flyball-guard restore --lift-budgets`"));
  }
}

}  // namespace

std::vector<Finding> guard_findings(const std::string& status, const std::string& path) {
  const json document = json::parse(status, nullptr, false);
  if (!document.is_object() || field<std::string>(document, "schema", "") != "flyball.guard_status/1") {
    return {finding(Severity::alarm, "guard", {}, path + " answers, but not as this version's guard does",
                    "upgrade flyball and flyball-guard together")};
  }
  std::vector<Finding> found;
  std::size_t held = 0;
  const auto boards = document.find("boards");
  const bool listed = boards != document.end() && boards->is_array();
  if (listed) {
    for (const json& board : *boards) {
      if (!board.is_object()) continue;
      if (field(board, "held", false)) ++held;
      note_board(board, found);
    }
  }
  found.insert(found.begin(),
               finding(Severity::info, "guard", {},
                       fmt::format("answers at {}; leases: {}, limits set on {} of {} boards", path,
                                   field<std::int64_t>(document, "leases", 0), held, listed ? boards->size() : 0)));
  const auto alarms = document.find("alarms");
  if (alarms == document.end() || !alarms->is_array()) return found;
  for (const json& alarm : *alarms) {
    if (!alarm.is_string()) continue;
    found.push_back(finding(Severity::alarm, "guard.alarm", {}, alarm.get<std::string>(),
                            "see `flyball-guard status` and `journalctl -u flyball-guard`"));
  }
  return found;
}

std::vector<Finding> check_guard(const std::string& path) {
  auto client = guard::GuardClient::connect(path, kPatience);
  if (!client) {
    // Without a guard flyball still observes; one that is there and dead holds limits that nobody gives back.
    const bool there = client.error().what.find("No such file") == std::string::npos;
    return {finding(there ? Severity::alarm : Severity::warning, "guard", {}, client.error().message(),
                    "without a guard flyball only observes: sudo systemctl start flyball-guard")};
  }
  const auto status = (*client)->status();
  if (!status) {
    return {finding(Severity::alarm, "guard", {}, path + " is there, but does not answer: " + status.error().what,
                    "see `journalctl -u flyball-guard`; the watchdog restarts a guard that hangs")};
  }
  return guard_findings(*status, path);
}

}  // namespace flyball::cli
