#include "cli/calibrate_facility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "cli/rate.h"
#include "series/accounting.h"

namespace flyball::cli {
namespace {

using facility::FacilityRecord;

constexpr double kEnergyLevel = 0.95;
constexpr std::int64_t kHourNs = 3'600'000'000'000;

struct Wanted {
  Seconds delay;
  Watts feed, cooling;
  std::optional<Celsius> design_air;
  std::optional<series::RateSeries> carbon;
};

Result<Wanted> wanted_of(const CalibrateOptions& options, Context& context) {
  Wanted made;
  auto delay = parse_seconds(options.delay.empty() ? "6h" : options.delay);
  if (!delay || !(*delay >= Seconds(0)) || *delay > Seconds(30 * 86400.0))
    return fail(ErrorCode::input, fmt::format("'{}' is no delay between 0 and 30 days", options.delay), "--delay",
                "write 6h");
  made.delay = *delay;
  const auto watts = [](const std::string& text, const char* flag) -> Result<Watts> {
    if (text.empty()) return Watts(0);
    auto value = parse_watts(text);
    if (!value) {
      value.error().where = flag;
      return fail(std::move(value.error()));
    }
    if (!(*value > Watts(0)))
      return fail(ErrorCode::input, fmt::format("'{}' carries nothing", text), flag, "write 2MW");
    return *value;
  };
  FLYBALL_ASSIGN(made.feed, watts(options.feed_rating, "--feed-rating"));
  FLYBALL_ASSIGN(made.cooling, watts(options.cooling_rating, "--cooling-rating"));
  if (!options.design_wet_bulb.empty()) {
    std::string text = options.design_wet_bulb;
    if (text.ends_with('C')) text.pop_back();
    const auto value = parse_double(text);
    if (!value || std::abs(*value) > 60)
      return fail(ErrorCode::input, fmt::format("'{}' is no wet bulb", options.design_wet_bulb), "--design-wet-bulb",
                  "write 24C");
    made.design_air = Celsius(*value);
  }
  if (!options.carbon.empty()) {
    FLYBALL_ASSIGN(made.carbon, read_rate(options.carbon, "--carbon", context.files));
  }
  return made;
}

double pue_of(std::span<const FacilityRecord> records) {
  Watts facility, it;
  for (const FacilityRecord& record : records) facility += record.point.facility, it += record.point.it;
  return facility / it;
}

/// Sums of an hour of what was foretold.
struct HourSum {
  double measured = 0, expected = 0, low = 0, high = 0;
  std::size_t count = 0;
};

void foretell(FacilityCalibration& made, facility::Building& building, std::span<const FacilityRecord> test) {
  facility::PhaseLibrary frozen = building.library;
  frozen.settle();
  frozen.freeze();
  facility::PhaseScores scores(made.train_pue);
  std::map<std::int64_t, HourSum> hours;
  constexpr Seconds kShown = Seconds(4 * 3600.0);
  const WallTime shown_from = test.back().point.at - kShown;
  for (const FacilityRecord& record : test) {
    const facility::FacilityPoint& point = record.point;
    building.library.phase(point.at, record.key);
    frozen.phase(point.at, record.key);
    const facility::Expectation told = building.library.take(point);
    const facility::Expectation still = frozen.take(point);
    scores.take(record.key, point, told, &still);
    HourSum& hour = hours[point.at.nanoseconds() / kHourNs];
    hour.measured += point.facility.value(), hour.expected += told.expected.value();
    hour.low += told.low.value(), hour.high += told.high.value();
    ++hour.count;
    if (point.at >= shown_from)
      made.shown.push_back({point.at, point.facility, point.it, told.expected, told.low, told.high, record.key.phase});
  }
  made.rows = scores.rows();
  made.left_out = scores.left_out();
  for (const auto& [hour, sum] : hours) {
    const auto n = static_cast<double>(sum.count);
    made.hours.push_back({WallTime(hour * kHourNs),
                          Watts(sum.measured / n),
                          {sum.expected / n, sum.low / n, sum.high / n, made.level},
                          0});
  }
}

Result<> account(FacilityCalibration& made, const series::RateSeries& carbon) {
  series::Tariff tariff;
  tariff.carbon_g = carbon;
  std::vector<Account> parts;
  Account sum;
  for (FacilityCalibration::Hour& hour : made.hours) {
    FLYBALL_ASSIGN(const Account one,
                   series::account_constant(hour.measured, {hour.start, hour.start + Seconds(3600)}, tariff));
    hour.carbon_g = one.carbon_g;
    sum.energy += one.energy;
    sum.duration += one.duration;
    sum.carbon_g += one.carbon_g;
  }
  sum.method = "hourly means of the facility's meters";
  made.account = sum;
  return {};
}

/// As warm as it hardly ever was: what a head-room must hold in.
Celsius warmest(std::span<const FacilityRecord> records, Celsius otherwise) {
  std::vector<double> air;
  for (std::size_t i = 0; i < records.size(); i += 8)
    if (records[i].point.air) air.push_back(records[i].point.air->value());
  constexpr double kDesign = 0.996;
  return air.empty() ? otherwise : Celsius(quantile(air, kDesign));
}

/// What is kept: the library, and what it says that others use.
std::string content_of(const FacilityCalibration& made, const facility::PhaseLibrary& library) {
  std::string text = library.text();
  for (const facility::Relief& relief : made.relief)
    text += fmt::format("relief {} {} {} {} {} {}\n", format_exact(relief.it.value()),
                        relief.air ? format_exact(relief.air->value()) : "-", format_exact(relief.fraction.value),
                        format_exact(relief.fraction.low), format_exact(relief.fraction.high),
                        format_exact(relief.fraction.level));
  return text;
}

/// What is learned from, and behind it what is foretold.
Result<std::vector<FacilityRecord>> records_of(const CalibrateOptions& options, const FacilityMap& map,
                                               FacilityCalibration& made) {
  FLYBALL_ASSIGN(std::vector<FacilityRecord> records, read_facility({options.train}, map, options, made.warnings));
  made.train_points = made.on_training ? records.size() / 2 : records.size();
  if (!made.on_training) {
    const WallTime end = records.back().point.at;
    FLYBALL_ASSIGN(const std::vector<FacilityRecord> later,
                   read_facility(options.evaluate, map, options, made.warnings));
    if (later.front().point.at <= end)
      return fail(ErrorCode::input, "the evaluation begins before the training ends", options.evaluate[0],
                  "a building is foretold from what lies before");
    records.insert(records.end(), later.begin(), later.end());
  }
  made.test_points = records.size() - made.train_points;
  if (const Seconds learned = records[made.train_points - 1].point.at - records.front().point.at; made.delay >= learned)
    return fail(ErrorCode::input,
                fmt::format("what is learned from lasts {}, and nothing of it is known {} later", format(learned),
                            format(made.delay)),
                "--delay", "give a longer recording, or a shorter delay");
  return records;
}

Result<FacilityCalibration> calibrate(const CalibrateOptions& options, const FacilityMap& map, Context& context) {
  FacilityCalibration made;
  FLYBALL_ASSIGN(const Wanted wanted, wanted_of(options, context));
  made.delay = wanted.delay;
  made.on_training = options.evaluate.empty();
  FLYBALL_ASSIGN(const std::vector<FacilityRecord> records, records_of(options, map, made));
  const std::span<const FacilityRecord> all(records), train = all.first(made.train_points);
  facility::BuildingOptions building_options;
  building_options.delay = wanted.delay;
  building_options.level = made.level;
  building_options.means = map.means;
  auto building = facility::learn_building(train, building_options);
  if (!building) {
    building.error().where = options.train;
    return fail(std::move(building.error()));
  }
  made.train_pue = pue_of(train);
  foretell(made, *building, all.subspan(made.train_points));
  building->library.settle();
  made.ups = building->ups;
  made.ups_note = building->ups_note;
  made.lags = building->lags;
  made.pue = facility::pue_over_time(facility::hourly_energy(all, building->step));
  made.apart = facility::non_compute(*building, all, kEnergyLevel);
  const facility::ResponseModel& response = *building->library.response();
  const WallTime end = records.back().point.at;
  made.first = records.front().point.at;
  made.last = end;
  // Meters that contradict each other all the time tell nothing of small differences between them.
  const bool contradicted = !made.pue.code.empty() && !made.pue.overall;
  if (contradicted) {
    made.warnings.push_back(
        fmt::format("no PUE ({}): {}; what is saved again is not told", made.pue.code, made.pue.diagnosis));
  } else if (auto relief = facility::relief_of(*building, all, kEnergyLevel)) {
    made.relief = *std::move(relief);
  } else {
    made.warnings.push_back("what is saved again is not told: " + relief.error().what);
  }
  made.design_air = wanted.design_air ? *wanted.design_air : warmest(all, response.air_middle());
  if (wanted.feed > Watts(0) || wanted.cooling > Watts(0)) {
    if (auto room = facility::head_room(response, wanted.feed, wanted.cooling, made.design_air, end)) {
      made.head_room = *std::move(room);
    } else {
      made.warnings.push_back("head-room is not told: " + room.error().what);
    }
  }
  if (wanted.carbon) FLYBALL_TRY(account(made, *wanted.carbon));
  if (contradicted && !options.keep.empty())
    return fail(ErrorCode::input, "meters that contradict each other make no baseline to keep: " + made.pue.diagnosis,
                "--keep", "mend the map or the meters; without --keep all is shown");
  if (!(options.keep.empty() && options.reproduce.empty())) {
    FLYBALL_ASSIGN(made.version, keep_version(options,
                                              {"facility " + map.format, content_of(made, building->library),
                                               facility::hash_of(all), end},
                                              context));
  }
  return made;
}

}  // namespace

std::string name_of(const std::optional<facility::PhaseKey>& key) {
  if (!key) return "all phases";
  return (key->job_type.empty() ? "" : key->job_type + " ") + std::string(to_string(key->phase));
}

Result<> calibrate_facility(const CalibrateOptions& options, const FacilityMap& map, Context& context) {
  FLYBALL_ASSIGN(const FacilityCalibration made, calibrate(options, map, context));
  for (const std::string& warning : made.warnings) log::warning("calibrate", "{}", warning);
  if (!options.report.empty() && !context.options.dry_run)
    FLYBALL_TRY(context.files.write_atomically(options.report, facility_page(options, map, made)));
  return context.out.write(context.options.json ? facility_json(options, map, made) : facility_text(map, made));
}

}  // namespace flyball::cli
