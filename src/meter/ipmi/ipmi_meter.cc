#include "meter/ipmi/ipmi_meter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "meter/budget.h"
#include "meter/child.h"
#include "meter/ipmi/text.h"
#include "meter/point.h"
#include "meter/secret.h"

namespace flyball::meter {
namespace {

constexpr std::string_view kDcmi = "dcmi";
constexpr std::string_view kLocal = "local";

class IpmiMeter final : public Meter {
 public:
  IpmiMeter(const Profile& profile, Secret password, Clock& clock, std::string program)
      : profile_(profile), password_(std::move(password)), clock_(clock), program_(std::move(program)) {}

  std::vector<MeterReading> read() override {
    const Budget budget(clock_, profile_.timeout);
    std::vector<MeterReading> made = all_absent(profile_, Status::missing, "not asked", clock_);
    const bool any_dcmi = std::any_of(profile_.points.begin(), profile_.points.end(), is_dcmi);
    const bool any_sensor = !std::all_of(profile_.points.begin(), profile_.points.end(), is_dcmi);
    if (any_dcmi) {
      read_part(made, true, {"dcmi", "power", "reading"}, budget);
    }
    if (any_sensor) {
      read_part(made, false, {"-c", "sdr", "list", "full"}, budget);
    }
    return made;
  }

  Result<Identity> identify() override {
    FLYBALL_ASSIGN(const std::string output, ask({"mc", "info"}, profile_.timeout));
    Identity identity;
    identity.vendor = ipmi_field(output, "Manufacturer Name");
    identity.model = ipmi_field(output, "Product Name");
    identity.serial = ipmi_field(output, "Product ID");
    identity.firmware = ipmi_field(output, "Firmware Revision");
    return identity;
  }

 private:
  static bool is_dcmi(const PointProfile& point) { return point.sensor == kDcmi; }

  /// The password goes by the environment: a command line is for every user to see. The least privilege is asked for.
  Result<std::string> ask(const std::vector<std::string>& command, Seconds deadline) const {
    std::vector<std::string> arguments = {program_};
    std::vector<std::string> variables;
    if (profile_.address != kLocal) {
      for (const char* word : {"-I", "lanplus", "-L", "USER", "-N", "1", "-R", "1", "-H"}) arguments.emplace_back(word);
      const auto colon = profile_.address.rfind(':');
      const bool has_port = colon != std::string::npos && profile_.address.find(':') == colon;
      arguments.push_back(profile_.address.substr(0, has_port ? colon : std::string::npos));
      if (has_port) {
        arguments.emplace_back("-p");
        arguments.push_back(profile_.address.substr(colon + 1));
      }
      if (!profile_.user.empty()) {
        arguments.emplace_back("-U");
        arguments.push_back(profile_.user);
      }
      arguments.emplace_back("-E");
      variables.push_back("IPMI_PASSWORD=" + password_.reveal());
    }
    arguments.insert(arguments.end(), command.begin(), command.end());
    const auto output = run_child(arguments, variables, deadline);
    if (!variables.empty()) explicit_bzero(variables.back().data(), variables.back().size());
    if (!output) return fail(output.error());
    if (output->status == 0) return output->out;
    std::string said(trim(std::string_view(output->error).substr(0, 200)));
    return fail(ErrorCode::failed, fmt::format("ipmitool ends with {}: {}", output->status, said), profile_.id);
  }

  void read_part(std::vector<MeterReading>& made, bool dcmi, const std::vector<std::string>& command,
                 const Budget& budget) const {
    const RequestTime time(clock_);
    const auto output =
        budget.over() ? fail(ErrorCode::failed, "no time left within meter.timeout") : ask(command, budget.left());
    const auto sensors = output && !dcmi ? parse_sensors(*output) : std::map<std::string, IpmiValue>();
    for (std::size_t i = 0; i < made.size(); ++i) {
      const PointProfile& point = profile_.points[i];
      if (is_dcmi(point) != dcmi) continue;
      made[i].measured = time.middle();
      made[i].received = clock_.now();
      if (!output) {
        set_absent(made[i], Status::failed, output.error().message());
        continue;
      }
      if (dcmi) {
        take(point, parse_dcmi(*output), made[i]);
      } else if (const auto found = sensors.find(point.sensor); found != sensors.end()) {
        take(point, found->second, made[i]);
      } else {
        set_absent(made[i], Status::not_supported, "the BMC has no sensor '" + point.sensor + "'");
      }
    }
  }

  static void take(const PointProfile& point, const IpmiValue& value, MeterReading& reading) {
    if (!value.said.ok()) return void(set_absent(reading, value.said.status, value.reason));
    reading.raw = fmt::format("{} {}", format_exact(*value.said), value.unit);
    if (value.unit != point.unit) {
      return void(set_absent(reading, Status::garbage,
                             fmt::format("the BMC says {} and the profile {}", value.unit, point.unit)));
    }
    set_value(reading, point, *value.said);
  }

  Profile profile_;
  Secret password_;
  Clock& clock_;
  std::string program_;
};

}  // namespace

Result<std::unique_ptr<Meter>> make_ipmi_meter(const Profile& profile, Clock& clock, const std::string& program) {
  if (profile.address.starts_with('-') || profile.user.starts_with('-')) {
    return fail(ErrorCode::input, "an address or user that begins with '-' would be an option", profile.id);
  }
  FLYBALL_ASSIGN(Secret password, load_secret(profile.password, "password"));
  return std::make_unique<IpmiMeter>(profile, std::move(password), clock, program);
}

}  // namespace flyball::meter
