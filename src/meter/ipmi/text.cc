#include "meter/ipmi/text.h"

#include <array>
#include <utility>

#include "base/decimal.h"
#include "base/text.h"

namespace flyball::meter {
namespace {

std::string our_unit(std::string_view said) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kUnits = {{
      {"Watts", "W"},
      {"Volts", "V"},
      {"Amps", "A"},
      {"degrees C", "degC"},
      {"RPM", "rpm"},
      {"percent", "%"},
  }};
  for (const auto& [theirs, ours] : kUnits) {
    if (said == theirs) return std::string(ours);
  }
  return std::string(said.substr(0, 40));
}

IpmiValue absent(Status status, std::string reason) {
  IpmiValue made;
  made.said = Sample<double>::absent(status);
  made.reason = std::move(reason);
  return made;
}

IpmiValue read_sensor(const std::vector<std::string_view>& cells) {
  const std::string_view status = trim(cells[3]);
  if (status == "ns") return absent(Status::missing, "the BMC has no reading of the sensor");
  IpmiValue made;
  double value = 0;
  if (!parse_decimal(trim(cells[1]), value)) {
    return absent(Status::garbage, "'" + std::string(trim(cells[1]).substr(0, 40)) + "' is no number");
  }
  made.said = value;
  made.unit = our_unit(trim(cells[2]));
  return made;
}

}  // namespace

std::string ipmi_field(std::string_view output, std::string_view name) {
  for (const auto line : split(output, '\n')) {
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == name) {
      return std::string(trim(line.substr(colon + 1)));
    }
  }
  return {};
}

IpmiValue parse_dcmi(std::string_view output) {
  // The state stands behind "is:"; older versions of the tool have a blank before the colon.
  const std::string state = ipmi_field(output, "Power reading state is");
  if (state.empty()) return absent(Status::failed, "ipmitool shows no state of the power reading");
  if (state != "activated") {
    return absent(Status::missing, "the power reading is " + state.substr(0, 40) + ": absent, not 0");
  }
  const std::string text = ipmi_field(output, "Instantaneous power reading");
  const std::string_view number = std::string_view(text).substr(0, text.find(' '));
  IpmiValue made;
  double value = 0;
  if (!text.ends_with(" Watts") || !parse_decimal(number, value)) {
    return absent(Status::garbage, "'" + text.substr(0, 40) + "' is no power");
  }
  made.said = value;
  made.unit = "W";
  return made;
}

std::map<std::string, IpmiValue> parse_sensors(std::string_view output) {
  std::map<std::string, IpmiValue> sensors;
  for (const auto line : split(output, '\n')) {
    const auto cells = split(line, ',');
    if (cells.size() < 4 || trim(cells[0]).empty()) continue;
    const std::string name(trim(cells[0]));
    const auto [place, is_new] = sensors.emplace(name, read_sensor(cells));
    if (!is_new) place->second = absent(Status::garbage, "the BMC has two sensors of this name");
  }
  return sensors;
}

}  // namespace flyball::meter
