#pragma once
// Commissioning: before a meter's numbers count, they are held against each other, and what was found is written into
// the profile.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meter/meter.h"
#include "meter/profile.h"
#include "meter/relations.h"

namespace flyball::meter {

struct CommissionOptions {
  int rounds = 5;
  Seconds pause{1};
};

struct PointReport {
  std::string name;
  Quantity quantity = Quantity::power;
  Sample<double> mean;  ///< over the rounds that gave a value, in the base unit, as the commissioned profile has it
  std::string reason;
  std::string raw;  ///< of the last round
  int good_rounds = 0;
  std::optional<double> resolution;        ///< smallest step that was seen
  std::optional<Seconds> update_interval;  ///< time between changes
};

enum class CheckState { passed, changed, not_checked, failed };
std::string_view to_string(CheckState state);

struct Check {
  std::string name;  ///< "identity", "word order", "scale", "clock", …
  CheckState state = CheckState::not_checked;
  std::string text;
};

struct CommissionReport {
  std::string identity;
  std::optional<ClockPair> clock;
  std::vector<PointReport> points;
  std::vector<Check> checks;
  Profile profile;  ///< with what was found in it
  /// Nothing failed: the profile may be used.
  bool passed() const;
};

using MeterOpener = std::function<Result<std::unique_ptr<Meter>>(const Profile&)>;

/// Reads some rounds and judges them. Where the word order of a Modbus block, the first register's number or a scale is
/// wrong and exactly one other fits, it is corrected; where several fit, it is left and failed. An identity that
/// differs from the one commissioned before is failed.
Result<CommissionReport> commission(const Profile& profile, const MeterOpener& open, Clock& clock,
                                    const CommissionOptions& options = {});

}  // namespace flyball::meter
