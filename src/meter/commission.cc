#include "meter/commission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "meter/modbus/modbus_meter.h"
#include "meter/modbus/registers.h"
#include "meter/point.h"

namespace flyball::meter {
namespace {

/// What one point said in the rounds.
struct Track {
  std::vector<MonoTime> at;
  std::vector<double> value;
  std::vector<std::vector<std::uint16_t>> registers;
  std::vector<MonoTime> registers_at;
  std::vector<MonoTime> refused_at;
  std::vector<double> refused;  ///< of power factors: numbers that may be percent or thousandths
  MeterReading last;

  void add(const MeterReading& reading, MonoTime received) {
    if (reading.value.ok()) {
      at.push_back(received);
      value.push_back(*reading.value);
    } else if (reading.quantity == Quantity::power_factor && parts_of_factor(reading.refused.value_or(0)) > 0) {
      refused_at.push_back(received);
      refused.push_back(*reading.refused);
    }
  }
};

using Tracks = std::vector<Track>;

Tracks read_rounds(const Profile& profile, Meter& meter, Clock& clock, const CommissionOptions& options) {
  Tracks tracks(profile.points.size());
  const auto* raw = dynamic_cast<const RegisterSource*>(&meter);
  for (int round = 0; round < options.rounds; ++round) {
    if (round > 0) clock.sleep_until(clock.now() + options.pause);
    auto readings = meter.read();
    for (std::size_t i = 0; i < tracks.size(); ++i) {
      Track& track = tracks[i];
      track.add(readings[i], readings[i].received);
      if (raw != nullptr && !raw->registers_of(i).empty()) {
        track.registers.push_back(raw->registers_of(i));
        track.registers_at.push_back(readings[i].received);
      }
      track.last = std::move(readings[i]);
    }
  }
  return tracks;
}

std::optional<double> rise_per_second(const std::vector<MonoTime>& at, const std::vector<double>& value) {
  if (value.size() < 2) return std::nullopt;
  const Seconds span = at.back() - at.front();
  if (!(span > Seconds(0))) return std::nullopt;
  return (value.back() - value.front()) / span.value();
}

std::optional<Observed> observed(const PointProfile& point, const Track& track) {
  const std::vector<double>& value = track.value.empty() ? track.refused : track.value;
  if (value.empty()) return std::nullopt;
  Observed made{point.name, point.group, point.quantity, 0, {}};
  for (const double one : value) made.mean += one / static_cast<double>(value.size());
  if (point.quantity == Quantity::energy) made.per_second = rise_per_second(track.at, value);
  return made;
}

std::vector<Observed> all_observed(const Profile& profile, const Tracks& tracks) {
  std::vector<Observed> made;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    if (auto one = observed(profile.points[i], tracks[i])) made.push_back(*std::move(one));
  }
  return made;
}

/// The rounds as another word order would have read them.
void decode_again(const PointProfile& point, Track& track) {
  track.at.clear();
  track.value.clear();
  track.refused_at.clear();
  track.refused.clear();
  for (std::size_t i = 0; i < track.registers.size(); ++i) {
    const RegisterValue value = decode_registers(track.registers[i], point.modbus);
    MeterReading reading;
    reading.quantity = point.quantity;
    if (!value.sentinel) set_value(reading, point, value.number);
    track.add(reading, track.registers_at[i]);
  }
}

/// A counter that stands still while the group draws power is half a counter, or something else.
bool stands_still(const Profile& profile, const Tracks& tracks, std::size_t counter) {
  constexpr double kClearSteps = 5;
  const PointProfile& point = profile.points[counter];
  const Track& track = tracks[counter];
  if (point.quantity != Quantity::energy || track.value.size() < 2 || track.value.front() != track.value.back()) {
    return false;
  }
  const double step = std::fabs(point.scale * point.to_base.factor);
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const PointProfile& other = profile.points[i];
    if (other.quantity != Quantity::power || other.group != point.group || tracks[i].value.empty()) continue;
    const Seconds span = track.at.back() - track.at.front();
    if (std::fabs(tracks[i].value.back()) * span.value() > kClearSteps * step) return true;
  }
  return false;
}

/// Every value of the points is one that a meter in operation says, and what can be compared fits up to a factor of
/// ten, which is for the scale to mend.
bool fits(const Profile& profile, const Tracks& tracks, const std::vector<std::size_t>& points) {
  for (const std::size_t i : points) {
    const Track& track = tracks[i];
    if (track.value.size() + track.refused.size() < track.registers.size()) {
      const bool all_absent = track.value.empty() && track.last.value.status == Status::missing;
      if (!all_absent) return false;
    }
    for (const double value : track.value) {
      if (!is_usual(profile.points[i].quantity, value)) return false;
    }
    const bool falls = !std::is_sorted(track.value.begin(), track.value.end());
    if (profile.points[i].quantity == Quantity::energy && falls) return false;
    if (stands_still(profile, tracks, i)) return false;
  }
  for (const Relation& relation : relations_of(all_observed(profile, tracks))) {
    const bool concerns = std::any_of(points.begin(), points.end(), [&](std::size_t i) {
      return std::find(relation.points.begin(), relation.points.end(), profile.points[i].name) != relation.points.end();
    });
    if (concerns && !relation.factor_of_ten()) return false;
  }
  return true;
}

constexpr std::array kOrders = {ByteOrder::abcd, ByteOrder::cdab, ByteOrder::badc, ByteOrder::dcba};

/// One block of registers has one order.
Check judge_order(const RegisterBlock& block, Profile& profile, Tracks& tracks) {
  const std::string name =
      fmt::format("word order of {} registers from {}", to_string(block.table), block.first + profile.register_base);
  const ByteOrder told = profile.points[block.points.front()].modbus.order;
  const auto with = [&](ByteOrder order, Profile& in, Tracks& of) {
    for (const std::size_t i : block.points) {
      in.points[i].modbus.order = order;
      decode_again(in.points[i], of[i]);
    }
  };
  if (fits(profile, tracks, block.points)) {
    return {name, CheckState::passed, fmt::format("{} gives values that fit", to_string(told))};
  }
  std::vector<ByteOrder> fitting;
  for (const ByteOrder order : kOrders) {
    Profile other = profile;
    Tracks read = tracks;
    with(order, other, read);
    if (fits(other, read, block.points)) fitting.push_back(order);
  }
  if (fitting.size() == 1) {
    with(fitting.front(), profile, tracks);
    return {name, CheckState::changed, fmt::format("{} does not fit, {} does", to_string(told), to_string(fitting[0]))};
  }
  std::string all;
  for (const ByteOrder order : fitting) all += fmt::format("{}{}", all.empty() ? "" : " or ", to_string(order));
  return {name, CheckState::failed,
          fitting.empty() ? std::string("no order gives values that fit: are the registers or types right?")
                          : fmt::format("{} does not fit, {} would", to_string(told), all)};
}

bool has_orders(const RegisterBlock& block, const Profile& profile, const Tracks& tracks) {
  return std::any_of(block.points.begin(), block.points.end(), [&](std::size_t i) {
    return width_of(profile.points[i].modbus.type) > 1 && !tracks[i].registers.empty();
  });
}

class Commissioning {
 public:
  Commissioning(const Profile& profile, const MeterOpener& open, Clock& clock, const CommissionOptions& options)
      : open_(open), clock_(clock), options_(options) {
    made_.profile = profile;
  }

  Result<CommissionReport> run() {
    FLYBALL_ASSIGN(meter_, open_(made_.profile));
    tracks_ = read_rounds(made_.profile, *meter_, clock_, options_);
    if (made_.profile.protocol == Protocol::modbus) {
      check_orders();
      const bool as_told = std::all_of(made_.checks.begin(), made_.checks.end(),
                                       [](const Check& c) { return c.state == CheckState::passed; });
      if (!as_told) try_other_base();
    }
    check_identity();
    check_clock();
    check_scales();
    check_directions();
    check_points();
    made_.profile.commissioned.at = format_rfc3339(clock_.wall());
    return std::move(made_);
  }

 private:
  void add(std::string name, CheckState state, std::string text) {
    made_.checks.push_back({std::move(name), state, std::move(text)});
  }

  void check_orders() {
    bool any = false;
    for (const RegisterBlock& block : plan_blocks(made_.profile)) {
      if (has_orders(block, made_.profile, tracks_)) {
        made_.checks.push_back(judge_order(block, made_.profile, tracks_));
        any = true;
      }
    }
    // Values of one register have no order, but may still be a neighbour's.
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      if (!tracks_[i].registers.empty()) all.push_back(i);
    }
    if (all.empty()) return add("registers", CheckState::failed, "the device gave none: " + tracks_[0].last.reason);
    const bool all_zero = std::all_of(all.begin(), all.end(), [&](std::size_t i) {
      return std::all_of(tracks_[i].value.begin(), tracks_[i].value.end(), [](double v) { return v == 0; });
    });
    if (all_zero) return add("registers", CheckState::failed, "every value is 0 or absent: these may be any registers");
    if (!any && !fits(made_.profile, tracks_, all)) add("registers", CheckState::failed, "values that do not fit");
  }

  /// Manuals count registers from 0 or from 1, and do not always say which.
  void try_other_base() {
    Commissioning other(made_.profile, open_, clock_, options_);
    Profile& profile = other.made_.profile;
    const int told = profile.register_base;
    profile.register_base = 1 - told;
    for (const PointProfile& point : profile.points) {
      if (point.modbus.address < profile.register_base) return;
    }
    auto meter = open_(profile);
    if (!meter) return;
    other.meter_ = *std::move(meter);
    other.tracks_ = read_rounds(profile, *other.meter_, clock_, options_);
    other.check_orders();
    if (!other.made_.passed()) return;
    const std::string found = fmt::format("off by one: the manual counts from {}", 1 - told);
    if (made_.passed()) {
      return add("registers", CheckState::failed, "another word order would fit, or they are " + found);
    }
    made_.checks = std::move(other.made_.checks);
    made_.profile = profile;
    tracks_ = std::move(other.tracks_);
    meter_ = std::move(other.meter_);
    add("registers", CheckState::changed, found);
  }

  void check_identity() {
    const auto identity = meter_->identify();
    std::string& known = made_.profile.commissioned.identity;
    if (!identity) {
      // A device that once said what it is and now does not may be another.
      return add("identity", known.empty() ? CheckState::not_checked : CheckState::failed, identity.error().what);
    }
    made_.identity = identity->text();
    if (!known.empty() && known != printable(made_.identity)) {
      return add("identity", CheckState::failed, fmt::format("was '{}' and is now '{}'", known, made_.identity));
    }
    known = printable(made_.identity);
    add("identity", CheckState::passed, made_.identity);
  }

  static std::string printable(std::string text) {
    std::erase_if(text, [](char c) { return c < ' ' || c > '~'; });
    return text;
  }

  void check_clock() {
    const auto pair = meter_->device_clock();
    if (!pair) return add("clock", CheckState::not_checked, pair.error().what);
    made_.clock = *pair;
    const Seconds offset = pair->device - pair->reader;
    made_.profile.commissioned.clock_offset = offset;
    add("clock", CheckState::passed,
        fmt::format("the device is {:+.3f} s from ours, to {:.3f} s", offset.value(), pair->uncertainty.value()));
  }

  void check_scales() {
    for (const ScaleJudgement& one : judge_scales(all_observed(made_.profile, tracks_))) {
      const std::string name = one.group.empty() ? "scale" : "scale of group " + one.group;
      switch (one.verdict) {
        case ScaleVerdict::nothing_to_compare:
          add(name, CheckState::not_checked, one.text);
          break;
        case ScaleVerdict::agrees:
          add(name, CheckState::passed, one.text);
          break;
        case ScaleVerdict::corrected:
          correct_scale(one);
          add(name, CheckState::changed, one.text);
          break;
        case ScaleVerdict::ambiguous:
        case ScaleVerdict::disagrees:
        case ScaleVerdict::is_apparent:
          add(name, CheckState::failed, one.text);
          break;
      }
    }
  }

  void correct_scale(const ScaleJudgement& one) {
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      PointProfile& point = made_.profile.points[i];
      if (point.name != one.point) continue;
      point.scale *= one.factor;
      Track& track = tracks_[i];
      if (track.value.empty()) {
        track.at = std::exchange(track.refused_at, {});
        track.value = std::exchange(track.refused, {});
      }
      for (double& value : track.value) value *= one.factor;  // only quantities without a shift are compared
    }
  }

  void check_directions() {
    for (const DirectionJudgement& one : judge_directions(all_observed(made_.profile, tracks_))) {
      const std::string name = one.group.empty() ? "direction" : "direction of group " + one.group;
      if (one.forward) {
        add(name, CheckState::passed, one.text);
        continue;
      }
      const double scale = made_.profile.point(one.point)->scale;
      add(name, CheckState::failed,
          fmt::format(
              "{}; turn it (its arrow points to the load), or where nobody can, write scale = {:g} for {}. What "
              "truly feeds back is commissioned while it draws",
              one.text, -scale, one.point));
    }
  }

  void check_points() {
    for (std::size_t i = 0; i < tracks_.size(); ++i) {
      const Track& track = tracks_[i];
      PointProfile& point = made_.profile.points[i];
      PointReport report;
      report.name = point.name;
      report.quantity = point.quantity;
      report.raw = track.last.raw;
      report.good_rounds = static_cast<int>(track.value.size());
      if (!track.value.empty()) {
        report.mean = observed(point, track)->mean;
        find_steps(track, report);
      } else {
        report.mean = Sample<double>::absent(track.last.value.status);
        report.reason = track.last.reason;
        if (!track.refused.empty()) {
          const double parts = parts_of_factor(track.refused.back());
          report.reason +=
              fmt::format("; in {}? write scale = {:g}", parts == 100 ? "percent" : "thousandths", point.scale / parts);
        }
        add("point " + point.name, CheckState::failed, "no value: " + report.reason);
      }
      if (report.resolution) point.resolution = report.resolution;
      if (report.update_interval) point.update_interval = report.update_interval;
      made_.points.push_back(std::move(report));
    }
  }

  static void find_steps(const Track& track, PointReport& report) {
    int changes = 0;
    for (std::size_t i = 1; i < track.value.size(); ++i) {
      const double step = std::fabs(track.value[i] - track.value[i - 1]);
      if (step == 0) continue;
      ++changes;
      report.resolution = std::min(report.resolution.value_or(step), step);
    }
    if (changes >= 2) report.update_interval = (track.at.back() - track.at.front()) / changes;
  }

  const MeterOpener& open_;
  Clock& clock_;
  CommissionOptions options_;
  std::unique_ptr<Meter> meter_;
  Tracks tracks_;
  CommissionReport made_;
};

}  // namespace

std::string_view to_string(CheckState state) {
  switch (state) {
    case CheckState::passed:
      return "passed";
    case CheckState::changed:
      return "changed";
    case CheckState::not_checked:
      return "not_checked";
    case CheckState::failed:
      break;
  }
  return "failed";
}

bool CommissionReport::passed() const {
  return std::none_of(checks.begin(), checks.end(), [](const Check& c) { return c.state == CheckState::failed; });
}

Result<CommissionReport> commission(const Profile& profile, const MeterOpener& open, Clock& clock,
                                    const CommissionOptions& options) {
  if (profile.points.empty()) return fail(ErrorCode::input, "the profile has no points", profile.id);
  return Commissioning(profile, open, clock, options).run();
}

}  // namespace flyball::meter
