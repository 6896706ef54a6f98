#include "facility/building.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/checksum.h"
#include "base/text.h"

namespace flyball::facility {
namespace {

constexpr std::size_t kFewestRecords = 100;
/// As many are enough for lags of an hour at ten seconds, and keep the search within seconds.
constexpr std::size_t kLagSamples = 30'000;
constexpr Seconds kLongestLag = Seconds(5400);
constexpr Seconds kRippleBlock = Seconds(600);
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Seconds usual_step(std::span<const FacilityRecord> records) {
  std::vector<double> steps;
  constexpr std::size_t kLookedAt = 10'000;
  for (std::size_t i = 1; i < std::min(records.size(), kLookedAt); ++i)
    steps.push_back((records[i].point.at - records[i - 1].point.at).value());
  return Seconds(std::max(median(steps), 1e-3));
}

/// Samples of a stage far from the first fit (a battery that charges) are left out of the second.
Result<StageFit> fit_ups(std::span<const FacilityRecord> records, Watts rating) {
  std::vector<StageSample> samples;
  double most = 0;
  constexpr double kQuiet = 0.01;
  for (const FacilityRecord& record : records) {
    if (!record.ups_in || !record.ups_out) continue;
    const bool storing = record.discharged && std::abs(record.discharged->value()) > kQuiet * record.ups_out->value();
    samples.push_back({*record.ups_in, *record.ups_out, record.point.exceptional || storing});
    most = std::max(most, record.ups_out->value());
  }
  if (samples.empty()) return fail(ErrorCode::input, "no UPS is metered");
  if (!(rating > Watts(0))) rating = Watts(most);
  FLYBALL_ASSIGN(StageFit made, fit_stage(samples, rating));
  constexpr double kFarRms = 4;
  for (StageSample& sample : samples) {
    const Watts off = sample.input - sample.output - made.loss.of(sample.output);
    if (std::abs(off.value()) > kFarRms * made.rms_error.value()) sample.on_battery = true;
  }
  return fit_stage(samples, rating);
}

struct Grid {
  std::vector<double> input, output;
};

/// The stretch in which the load moves most.
Grid grid_of(std::span<const FacilityRecord> records, Seconds step, const std::optional<StageFit>& ups, bool cooling) {
  const auto moved = [&](std::size_t i) { return std::abs((records[i].point.it - records[i - 1].point.it).value()); };
  std::size_t best = 0;
  double sum = 0, most = -1;
  for (std::size_t i = 1; i < records.size(); ++i) {
    sum += moved(i);
    if (i > kLagSamples) sum -= moved(i - kLagSamples);
    if (i >= kLagSamples && sum > most) most = sum, best = i - kLagSamples;
  }
  Grid grid;
  WallTime next = records[best].point.at;
  double last = kNan;
  for (std::size_t i = best; i < records.size() && grid.input.size() < kLagSamples;) {
    const FacilityRecord& record = records[i];
    if (record.point.at + step * 0.5 < next) {
      ++i;
      continue;
    }
    const bool here = record.point.at - next <= step * 0.5;
    if (here) {
      const Watts loss = ups ? ups->loss.of(record.point.it) : Watts();
      last = (record.point.it + loss).value();
      const double out = cooling ? (record.cooling ? record.cooling->value() : kNan)
                                 : (record.point.facility - record.point.it - loss).value();
      grid.output.push_back(record.point.exceptional ? kNan : out);
      ++i;
    } else {
      grid.output.push_back(kNan);
    }
    grid.input.push_back(last);
    next = next + step;
  }
  return grid;
}

/// Means of `count` neighbours.
std::vector<double> coarser(const std::vector<double>& values, std::size_t count) {
  std::vector<double> made;
  for (std::size_t i = 0; i + count <= values.size(); i += count) {
    double sum = 0;
    for (std::size_t j = 0; j < count; ++j) sum += values[i + j];
    made.push_back(sum / static_cast<double>(count));
  }
  return made;
}

/// Where noise drowns the answer, means over longer times may show it.
Lags lags_of(std::span<const FacilityRecord> records, Seconds step, const std::optional<StageFit>& ups, bool means) {
  std::size_t metered = 0;
  for (const FacilityRecord& record : records) metered += record.cooling ? 1 : 0;
  const bool cooling = 10 * metered > 9 * records.size();
  const Grid grid = grid_of(records, step, ups, cooling);
  LagOptions options;
  options.longest = kLongestLag;
  options.at_once = !cooling;
  Lags made;
  for (const std::size_t count : {1U, 6U}) {
    options.means = means || count > 1;
    const Lags tried =
        find_lags(coarser(grid.input, count), coarser(grid.output, count), step * static_cast<double>(count), options);
    if (count == 1 || tried.identifiable) made = tried;
    if (made.identifiable) break;
  }
  return made;
}

/// What was known `delay` before the end, if that is at least half.
std::span<const FacilityRecord> known_part(std::span<const FacilityRecord> train, Seconds delay) {
  const WallTime until = train.back().point.at - delay;
  const auto end =
      std::partition_point(train.begin(), train.end(), [&](const FacilityRecord& r) { return r.point.at <= until; });
  const auto count = static_cast<std::size_t>(end - train.begin());
  return 2 * count >= train.size() ? train.first(count) : train;
}

void add(std::vector<double>& sum, const std::vector<double>& x, double by) {
  if (sum.empty()) sum.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sum[i] += by * x[i];
}

/// A sum of differences between moments, times their length.
struct Difference {
  std::vector<double> x;
  double heat = 0;

  void take(const ResponseModel::Moment& more, const ResponseModel::Moment& less, double seconds) {
    add(x, more.x, seconds);
    add(x, less.x, -seconds);
    heat += seconds * (more.now.heat - less.now.heat);
  }
  Estimate joules(const ResponseModel& response, WallTime at, double level) const {
    return x.empty() ? Estimate{0, 0, 0, level} : response.power_w(x, heat, at, level);
  }
};

/// Ten minutes of one phase: what its swings do beside its mean.
struct Block {
  std::vector<double> x;
  ResponseModel::Now sum{};
  double seconds = 0;
  WallTime start, last;
  PhaseKey key;

  static void add_now(ResponseModel::Now& to, const ResponseModel::Now& from, double by) {
    using Now = ResponseModel::Now;
    for (double Now::*field : {&Now::load, &Now::heat, &Now::fast, &Now::felt, &Now::slow, &Now::slowest, &Now::air,
                               &Now::dryness, &Now::set_point, &Now::chillers, &Now::hour, &Now::day_share})
      to.*field += by * from.*field;
    for (std::size_t i = 0; i < to.on.size(); ++i) to.on[i] += by * from.on[i];
  }
  void take(const ResponseModel::Moment& moment, double length) {
    add(x, moment.x, length);
    add_now(sum, moment.now, length);
    seconds += length;
    last = moment.at;
  }
  void finish(const ResponseModel& response, Difference& ripple) {
    if (seconds > 0) {
      ResponseModel::Now mean{};
      mean.day_share = 0;
      add_now(mean, sum, 1 / seconds);
      const auto still = response.moment_of(mean, last);
      add(ripple.x, x, 1);
      add(ripple.x, still.x, -seconds);
      ripple.heat += sum.heat - seconds * response.heat_of(mean.load);
    }
    x.clear();
    sum = {};
    sum.day_share = 0;
    seconds = 0;
  }
};

}  // namespace

std::optional<FacilityRecord> record_of(const FacilitySample& sample) {
  if (!sample.it || !sample.utility || !(*sample.it > Watts(0))) return std::nullopt;
  FacilityRecord made;
  made.utility = sample.utility;
  made.ups_in = sample.ups_in;
  made.ups_out = sample.ups_out;
  made.generated = sample.generated;
  made.discharged = sample.discharged;
  const bool battery = sample.on_battery.value_or(false);
  if (battery && !made.discharged) made.discharged = sample.ups_out ? sample.ups_out : sample.it;
  if (sample.chillers && sample.pumps && sample.fans) made.cooling = *sample.chillers + *sample.pumps + *sample.fans;
  made.point = {sample.at,
                *sample.it,
                *sample.utility + made.generated.value_or(Watts()) + made.discharged.value_or(Watts()),
                sample.wet_bulb ? sample.wet_bulb : sample.dry_bulb,
                sample.wet_bulb ? sample.dry_bulb : std::nullopt,
                sample.set_point,
                sample.chillers_on,
                battery};
  if (!(made.point.facility > Watts(0))) return std::nullopt;
  const JobShare* largest = nullptr;
  for (const JobShare& job : sample.jobs)
    if (largest == nullptr || job.gpus_fraction > largest->gpus_fraction) largest = &job;
  if (largest != nullptr) made.key = {largest->type, largest->phase};
  return made;
}

void name_idle(std::vector<FacilityRecord>& records) {
  const PhaseKey nothing;
  if (std::all_of(records.begin(), records.end(), [&](const FacilityRecord& r) { return r.key == nothing; })) return;
  for (FacilityRecord& record : records)
    if (record.key == nothing) record.key.phase = Phase::idle;
}

Result<Building> learn_building(std::span<const FacilityRecord> train, const BuildingOptions& options) {
  if (train.size() < kFewestRecords)
    return fail(ErrorCode::input, fmt::format("{} samples; at least {}", train.size(), kFewestRecords), {},
                "give a longer recording");
  const std::span<const FacilityRecord> known = known_part(train, options.delay);
  const Seconds step = usual_step(known);
  std::optional<StageFit> ups;
  std::string note;
  if (auto fitted = fit_ups(known, options.ups_rating)) {
    ups = *std::move(fitted);
  } else {
    note = fitted.error().what;
  }
  Lags lags = lags_of(known, step, ups, options.means);
  ResponseOptions response;
  response.it_rating = options.it_rating;
  if (ups) response.stage = ups->loss;
  if (lags.identifiable) {
    const double early = options.means ? step.value() / 2 : 0;
    response.dead_time = Seconds(std::max(lags.dead_time_s.value - early, 0.0));
    response.first_lag = Seconds(lags.first_lag_s.value);
    response.second_lag = Seconds(lags.second_lag_s.value);
  }
  std::vector<FacilityPoint> points;
  points.reserve(known.size());
  for (const FacilityRecord& record : known) points.push_back(record.point);
  FLYBALL_ASSIGN(ResponseModel shared, ResponseModel::make(points, response));
  LibraryOptions library;
  library.delay = options.delay;
  library.level = options.level;
  FLYBALL_ASSIGN(PhaseLibrary phases, PhaseLibrary::make(library, std::move(shared)));
  for (const FacilityRecord& record : train) {
    phases.phase(record.point.at, record.key);
    phases.take(record.point);
  }
  return Building{std::move(ups), std::move(note), std::move(lags), step, std::move(phases)};
}

NonCompute non_compute(const Building& building, std::span<const FacilityRecord> records, double level) {
  NonCompute made;
  if (records.empty() || building.library.response() == nullptr) return made;
  ResponseModel response = *building.library.response();
  response.rewind();
  const WallTime end = records.back().point.at;
  Difference over, checkpoint, ripple, staging;
  Block block;
  block.sum.day_share = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const FacilityRecord& record = records[i];
    const FacilityPoint& point = record.point;
    const auto moment = response.take(point);
    if (i == 0) continue;
    // A hole is in no sum.
    const Seconds length = point.at - records[i - 1].point.at;
    if (length > building.step * 3) continue;
    const double h = length.value();
    made.facility += point.facility * length;
    made.it += point.it * length;
    const bool writes = record.key.phase == Phase::checkpoint;
    if (record.key.phase == Phase::idle) made.idle += point.facility * length, made.idle_it += point.it * length;
    if (writes) made.checkpoint += point.facility * length, made.checkpoint_it += point.it * length;
    if (moment.now.felt > moment.now.heat) {
      auto settled = response.answered(point);
      over.take(moment, settled, h);
      if (writes) checkpoint.take(moment, settled, h);
    }
    if (!(record.key == block.key) || point.at - block.start >= kRippleBlock) {
      block.finish(response, ripple);
      block.key = record.key;
      block.start = point.at;
    }
    block.take(moment, h);
    if (response.usual_chillers(moment.now.felt)) staging.take(moment, response.fewest_chillers(moment), h);
  }
  block.finish(response, ripple);
  made.over_cooling_j = over.joules(response, end, level);
  made.checkpoint_over_cooling_j = checkpoint.joules(response, end, level);
  made.ripple_j = ripple.joules(response, end, level);
  if (response.usual_chillers(0)) made.staging_hysteresis_j = staging.joules(response, end, level);
  return made;
}

Result<HeadRoom> head_room(const ResponseModel& response, Watts feed, Watts cooling, Celsius air, WallTime at,
                           double level) {
  const Watts rating = response.rating();
  constexpr int kSteps = 800;
  constexpr double kMostRatings = 4;
  // Of value, high and low: the first load at which they pass the feed.
  double found[3] = {kNan, kNan, kNan}, before[3] = {0, 0, 0};
  double by_cooling = kNan, heat_before = 0;
  for (int i = 0; i <= kSteps; ++i) {
    const double load = kMostRatings * i / kSteps;
    const auto moment = response.steady({rating * load, air}, at);
    const Estimate power = response.power_w(moment.x, moment.now.heat, at, level);
    const double now[3] = {power.value, power.high, power.low};
    for (int k = 0; k < 3; ++k) {
      if (feed > Watts(0) && std::isnan(found[k]) && now[k] > feed.value()) {
        const double share = i == 0 ? 0 : (feed.value() - before[k]) / (now[k] - before[k]);
        found[k] = load - kMostRatings / kSteps * (1 - share);
      }
      before[k] = now[k];
    }
    const double heat = moment.now.heat * rating.value();
    if (cooling > Watts(0) && std::isnan(by_cooling) && heat > cooling.value()) {
      const double share = i == 0 ? 0 : (cooling.value() - heat_before) / (heat - heat_before);
      by_cooling = load - kMostRatings / kSteps * (1 - share);
    }
    heat_before = heat;
  }
  HeadRoom made;
  const double feed_load = found[0], r = rating.value();
  const bool by_feed = !std::isnan(feed_load) && (std::isnan(by_cooling) || feed_load <= by_cooling);
  if (!by_feed && std::isnan(by_cooling))
    return fail(ErrorCode::input, fmt::format("no limit is met up to {} of IT", format(rating * kMostRatings)),
                "head room", "state the rating of the feed or of the cooling");
  constexpr double kNothing = kMostRatings / kSteps;
  if ((by_feed ? feed_load : by_cooling) < kNothing)
    return fail(ErrorCode::input, "without any IT the building takes all that the feed or the cooling carries",
                "head room", "state the rating of the whole feed or cooling");
  made.limited_by = by_feed ? "feed" : "cooling";
  const double load = by_feed ? feed_load : by_cooling;
  made.it_w = by_feed ? Estimate{load * r, (std::isnan(found[1]) ? load : found[1]) * r,
                                 (std::isnan(found[2]) ? load : found[2]) * r, level}
                      : Estimate{load * r, load * r, load * r, level};
  if (by_feed && !std::isnan(by_cooling)) made.it_w.high = std::min(made.it_w.high, by_cooling * r);
  constexpr double kBeyond = 1.1;
  made.beyond_seen = load * r > kBeyond * response.most_it().value();
  return made;
}

std::vector<EnergyInterval> hourly_energy(std::span<const FacilityRecord> records, Seconds step) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  struct Sum {
    double utility = 0, it = 0, generated = 0, discharged = 0;
    std::size_t count = 0, generating = 0, storing = 0;
  };
  std::map<std::int64_t, Sum> hours;
  for (const FacilityRecord& record : records) {
    Sum& sum = hours[record.point.at.nanoseconds() / kHour];
    ++sum.count;
    sum.utility += record.utility ? record.utility->value() : record.point.facility.value();
    sum.it += record.point.it.value();
    if (record.generated) ++sum.generating, sum.generated += record.generated->value();
    if (record.discharged) ++sum.storing, sum.discharged += record.discharged->value();
  }
  std::vector<EnergyInterval> made;
  const double full = 3600 / step.value();
  constexpr double kEnough = 0.8;
  for (const auto& [hour, sum] : hours) {
    EnergyInterval one;
    one.start = WallTime(hour * kHour);
    one.length = Seconds(3600);
    const auto n = static_cast<double>(sum.count);
    if (n >= kEnough * full) {
      one.utility = Joules(3600 * sum.utility / n);
      one.it = Joules(3600 * sum.it / n);
      if (sum.generating > 0) one.generated = Joules(3600 * sum.generated / n);
      if (sum.storing > 0) one.discharged = Joules(3600 * sum.discharged / n);
    }
    made.push_back(one);
  }
  return made;
}

std::string hash_of(std::span<const FacilityRecord> records) {
  std::string text;
  const auto shown = [](const auto& value) {
    if constexpr (requires { value->value(); }) {
      return value ? format_exact(value->value()) : std::string();
    } else {
      return value ? format_exact(*value) : std::string();
    }
  };
  // In pieces, so that a month at ten seconds needs no text of its own.
  constexpr std::size_t kPiece = 1 << 20;
  for (const FacilityRecord& r : records) {
    text +=
        fmt::format("{} {} {} {} {} {} {} {} {} {} {}:{}\n", r.point.at.nanoseconds(), format_exact(r.point.it.value()),
                    format_exact(r.point.facility.value()), shown(r.point.air), shown(r.point.dry_bulb),
                    shown(r.point.set_point), shown(r.point.chillers_on), r.point.exceptional ? 1 : 0, shown(r.ups_in),
                    shown(r.ups_out), to_string(r.key.phase), r.key.job_type);
    if (text.size() < kPiece) continue;
    text = sha256_hex(text);
  }
  return sha256_hex(text);
}

}  // namespace flyball::facility
