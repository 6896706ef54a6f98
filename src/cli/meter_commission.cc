#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/app.h"
#include "cli/meter_profile.h"
#include "meter/commission.h"
#include "meter/open.h"
#include "meter/profile.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string profile;
  std::string address;
  std::string write;
  int rounds = 5;
  std::string pause = "1s";
};

std::string shown(const meter::PointReport& point) {
  return point.mean.ok() ? meter::format(point.quantity, *point.mean) : "–";
}

std::string text_of(const meter::CommissionReport& report, const std::string& written) {
  report::Table checks;
  checks.columns = {{"check"}, {"result"}, {"found"}};
  for (const meter::Check& check : report.checks) {
    checks.rows.push_back({check.name, std::string(meter::to_string(check.state)), check.text});
  }
  report::Table points;
  points.columns = {{"point"},
                    {"quantity"},
                    {"mean", report::Align::right},
                    {"smallest step", report::Align::right},
                    {"changes every", report::Align::right},
                    {"as sent"},
                    {"why not"}};
  for (const meter::PointReport& point : report.points) {
    points.rows.push_back({point.name, std::string(meter::to_string(point.quantity)), shown(point),
                           point.resolution ? meter::format(point.quantity, *point.resolution) : "–",
                           point.update_interval ? format(*point.update_interval) : "–", point.raw, point.reason});
  }
  return fmt::format("Meter {}, {} at {}\n\n{}\n{}\n{}\n", report.profile.id, to_string(report.profile.protocol),
                     report.profile.address, report::to_text(points), report::to_text(checks),
                     written.empty() ? "Nothing was written." : "Written: " + written);
}

report::Json json_of(const meter::CommissionReport& report, const std::string& written) {
  report::Json made = report::document("meter_commission");
  made["meter"] = report::text(report.profile.id);
  made["protocol"] = std::string(to_string(report.profile.protocol));
  made["address"] = report::text(report.profile.address);
  made["passed"] = report.passed();
  made["identity"] = report.identity.empty() ? report::Json(nullptr) : report::text(report.identity);
  made["clock_offset_s"] =
      report.clock ? report::number((report.clock->device - report.clock->reader).value()) : report::Json(nullptr);
  made["clock_uncertainty_s"] =
      report.clock ? report::number(report.clock->uncertainty.value()) : report::Json(nullptr);
  made["checks"] = report::Json::array();
  for (const meter::Check& check : report.checks) {
    made["checks"].push_back({{"name", check.name},
                              {"state", std::string(meter::to_string(check.state))},
                              {"found", report::text(check.text)}});
  }
  made["points"] = report::Json::array();
  for (const meter::PointReport& point : report.points) {
    const meter::PointProfile* profile = report.profile.point(point.name);
    report::Json one = {{"name", report::text(point.name)},
                        {"quantity", std::string(meter::to_string(point.quantity))},
                        {"unit", std::string(meter::unit_of(point.quantity))}};
    one["mean"] = report::number(point.mean);
    one["status"] = std::string(flyball::to_string(point.mean.status));
    one["reason"] = point.reason.empty() ? report::Json(nullptr) : report::text(point.reason);
    one["as_sent"] = report::text(point.raw);
    one["scale"] = profile == nullptr ? report::Json(nullptr) : report::number(profile->scale);
    one["good_rounds"] = point.good_rounds;
    one["resolution"] = point.resolution ? report::number(*point.resolution) : report::Json(nullptr);
    one["update_interval_s"] =
        point.update_interval ? report::number(point.update_interval->value()) : report::Json(nullptr);
    made["points"].push_back(std::move(one));
  }
  made["written"] = written.empty() ? report::Json(nullptr) : report::text(written);
  return made;
}

Result<> meter_commission(const Options& options, Context& context) {
  FLYBALL_ASSIGN(meter::Profile profile, load_meter_profile(options.profile, context));
  if (!options.address.empty()) profile.address = options.address;
  FLYBALL_ASSIGN(const Seconds pause, parse_seconds(options.pause));
  const auto open = [&](const meter::Profile& of) { return meter::open_meter(of, context.clock); };
  FLYBALL_ASSIGN(const meter::CommissionReport report,
                 meter::commission(profile, open, context.clock, {options.rounds, pause}));
  std::string written;
  if (report.passed() && !context.options.dry_run && !options.write.empty()) {
    FLYBALL_TRY(context.files.write_atomically(options.write, meter::profile_text(report.profile)));
    written = options.write;
  }
  FLYBALL_TRY(
      context.out.write(context.options.json ? report::dump(json_of(report, written)) : text_of(report, written)));
  if (report.passed()) return {};
  FLYBALL_TRY(context.out.commit());
  std::vector<Error> errors;
  for (const meter::Check& check : report.checks) {
    if (check.state != meter::CheckState::failed) continue;
    errors.push_back(
        {ErrorCode::failed, check.text, check.name, "mend the profile and commission again; nothing was written"});
  }
  return fail_all(errors);
}

}  // namespace

void add_meter_commission(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "meter commission",
       .summary = "Hold a meter's numbers against each other and write what was found into its profile",
       .examples =
           "  flyball meter commission rack12.conf --write rack12.commissioned.conf\n"
           "  flyball meter commission pdu-generic --address 10.0.0.7:161 --json\n\n"
           "Reads only. Checks identity, word order (Modbus), scale by V x A x PF, turned current transformers, "
           "clock;\n"
           "see doc/meters.md. Any failed check: exit 1, and nothing is written. Secrets come from the files or\n"
           "variables that the profile names."},
      [options](Context& context) { return meter_commission(*options, context); });
  command.add_option("PROFILE", options->profile, "A profile, or the name of one in presets/meters")->required();
  command.add_option("--address", options->address, "Instead of the profile's");
  command.add_option("--write", options->write, "Write the commissioned profile here, whole or not at all")
      ->type_name("FILE");
  command.add_option("--rounds", options->rounds, "Readings that are compared")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  command.add_option("--pause", options->pause, "Between two rounds")->capture_default_str();
}

}  // namespace flyball::cli
