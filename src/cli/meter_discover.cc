#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cli/app.h"
#include "cli/meter_profile.h"
#include "meter/profile.h"
#include "meter/redfish/discover.h"
#include "report/json.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string profile;
  std::string address;
};

Result<> meter_discover(const Options& options, Context& context) {
  FLYBALL_ASSIGN(meter::Profile profile, load_meter_profile(options.profile, context));
  if (!options.address.empty()) profile.address = options.address;
  FLYBALL_ASSIGN(meter::Discovery found, meter::discover_redfish(profile, context.clock));
  for (const std::string& note : found.notes) log::warning("meter", "{}", note);
  if (found.points.empty())
    return fail(
        ErrorCode::failed,
        fmt::format("none of {} resources says power, energy, temperature, voltage or current", found.resources),
        profile.address, "check that the account may read sensors");
  profile.points = std::move(found.points);
  for (meter::PointProfile& point : profile.points) point.scope = profile.scope;
  profile.commissioned = {};
  if (!context.options.json) return context.out.write(meter::profile_text(profile));
  report::Json made = report::document("meter_discovery");
  made["meter"] = report::text(profile.id);
  made["address"] = report::text(profile.address);
  made["resources"] = found.resources;
  made["points"] = report::Json::array();
  for (const meter::PointProfile& point : profile.points) {
    made["points"].push_back({{"name", report::text(point.name)},
                              {"quantity", std::string(meter::to_string(point.quantity))},
                              {"unit", report::text(point.unit)},
                              {"path", report::text(point.path)},
                              {"pointer", report::text(point.pointer)}});
  }
  made["left_out"] = report::Json::array();
  for (const std::string& note : found.notes) made["left_out"].push_back(report::text(note));
  return context.out.write(report::dump(made));
}

}  // namespace

void add_meter_discover(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "meter discover",
       .summary = "Walk over a Redfish service and write what can be read there as a profile",
       .examples =
           "  flyball meter discover bmc.conf --output bmc.found.conf\n"
           "  flyball meter discover redfish-power --address https://10.0.0.9 --json\n\n"
           "Takes [meter] of the profile (address, user, password_file, ca_file) and not its points. Reads only,\n"
           "at most 300 resources within two minutes, and follows no link to elsewhere. Delete what is not\n"
           "wanted, then flyball meter commission"},
      [options](Context& context) { return meter_discover(*options, context); });
  command.add_option("PROFILE", options->profile, "A profile, or the name of one in presets/meters")->required();
  command.add_option("--address", options->address, "Instead of the profile's");
}

}  // namespace flyball::cli
