#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "cli/calibrate.h"
#include "facility/accuracy.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

constexpr Seconds kHour = Seconds(3600);

/// One way of foretelling all that is counted, and how well it did.
struct Outcome {
  std::vector<facility::PlantForecast> forecasts;
  facility::Accuracy accuracy;
  std::size_t inside = 0;  ///< measured values inside their interval

  double coverage_fraction() const {
    return forecasts.empty() ? std::numeric_limits<double>::quiet_NaN()
                             : static_cast<double>(inside) / static_cast<double>(forecasts.size());
  }
};

Outcome outcome_of(std::vector<facility::PlantForecast> forecasts, std::span<const facility::PlantInterval> intervals) {
  Outcome made{std::move(forecasts), {}, 0};
  std::vector<Watts> measured, predicted;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    measured.push_back(intervals[i].mean_power());
    predicted.push_back(made.forecasts[i].power);
    if (measured.back() >= made.forecasts[i].low && measured.back() <= made.forecasts[i].high) ++made.inside;
  }
  made.accuracy = facility::accuracy(measured, predicted);
  return made;
}

std::vector<facility::PlantForecast> with_state(const facility::PlantBaseline& baseline,
                                                std::span<const facility::PlantInterval> intervals) {
  std::vector<facility::PlantForecast> made;
  for (const facility::PlantInterval& interval : intervals) made.push_back(baseline.forecast(interval));
  return made;
}

struct Calibration {
  PlantInput train_input;
  facility::Intervals train, test;
  std::size_t train_hours = 0;  ///< that the forecasts learned from
  Seconds delay;
  Outcome updated, frozen, idle;
  std::vector<facility::PlantBaseline::Coefficient> coefficients;
  std::array<double, facility::AdaptiveRegression::kDriftFactors.size()> memories{};
  Watts load_middle, load_spread;
  Celsius air_middle, air_spread;
  std::vector<std::string> warnings;
  std::optional<KeptVersion> version;
  bool on_training = false;  ///< no other data were given: the second half is foretold from the first
};

/// Hours that the meters saw and the weather did not.
struct Unweathered {
  std::size_t hours = 0, of = 0;
  std::string weather_covers;

  std::string text() const {
    return fmt::format("{} of {} hours ({}) have no weather: {}", hours, of,
                       format_percent(static_cast<double>(hours) / static_cast<double>(of), 0), weather_covers);
  }
};

/// Samples of all files together, in order of time.
Result<facility::Intervals> read_intervals(const std::vector<std::string>& files, const PlantMap& map,
                                           const std::vector<std::string>& weather, std::vector<std::string>& warnings,
                                           Unweathered& unweathered) {
  std::vector<facility::PlantSample> samples;
  for (const std::string& file : files) {
    FLYBALL_ASSIGN(PlantInput input, read_plant(file, map, weather));
    samples.insert(samples.end(), input.samples.begin(), input.samples.end());
    for (std::string& warning : input.warnings)
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
        warnings.push_back(std::move(warning));
    unweathered.weather_covers = input.weather_covers;
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.at < b.at; };
  std::stable_sort(samples.begin(), samples.end(), earlier);
  facility::IntervalRule rule;
  rule.least_load = map.least_load;
  facility::Intervals made = facility::intervals_of(samples, rule);
  unweathered.hours = made.without_weather;
  unweathered.of = made.counted.size() + made.idle.size() + made.too_few_samples + made.without_weather;
  return made;
}

void tell_apart(const char* what, const Unweathered& unweathered, std::vector<std::string>& warnings) {
  if (unweathered.hours > 0)
    warnings.push_back(
        fmt::format("{}: {}; they are not counted, name their files with --weather", what, unweathered.text()));
}

/// Too few hours are no fault of the plant's file where its weather is missing.
Error blame(Error error, const Unweathered& unweathered, const std::string& path) {
  error.where = path;
  if (unweathered.hours == 0) return error;
  error.what += "; " + unweathered.text();
  error.where = "--weather";
  error.remedy = fmt::format("name the files of the outdoor air of {}", path);
  return error;
}

/// Where no other data are given, the second half of the training is foretold from the first.
void hold_half(facility::Intervals& train, facility::Intervals& test) {
  const auto middle = train.counted.begin() + static_cast<std::ptrdiff_t>(train.counted.size() / 2);
  test = {{middle, train.counted.end()}, {}, train.too_few_samples, train.without_weather};
  train.counted.erase(middle, train.counted.end());
}

void foretell(Calibration& made, const facility::PlantBaseline& fitted) {
  facility::PlantBaseline moving = fitted;
  const WallTime first = made.test.counted.front().start;
  if (first <= made.train.counted.back().start) {
    if (made.test.counted.back().start >= made.train.counted.front().start)
      made.warnings.emplace_back("evaluation and training overlap in time: these figures are no forecast");
    moving.begin_again(first);
  }
  facility::PlantBaseline still = moving;
  still.settle();
  made.frozen = outcome_of(with_state(still, made.test.counted), made.test.counted);
  made.idle = outcome_of(with_state(still, made.test.idle), made.test.idle);
  made.updated = outcome_of(facility::foretell_all(moving, made.test.counted), made.test.counted);
  made.coefficients = still.coefficients();
  made.memories = moving.memory_weights();
  made.load_middle = still.load_middle();
  made.load_spread = still.load_spread();
  made.air_middle = still.air_middle();
  made.air_spread = still.air_spread();
}

/// With a delay as long as the training nothing is learned yet when the last hour of it is foretold.
Result<> check_delay(const Calibration& made) {
  const Seconds length = made.train.counted.back().start + kHour - made.train.counted.front().start;
  if (made.delay < length) return {};
  return fail(ErrorCode::input,
              fmt::format("a delay of {} is not shorter than the training, which is {} long{}", format(made.delay),
                          format(length), made.on_training ? " (the first half of the file)" : ""),
              "--delay", "give a shorter delay or a longer training");
}

Result<Calibration> calibrate(const CalibrateOptions& options, const PlantMap& map, Context& context) {
  Calibration made;
  auto delay = parse_seconds(options.delay.empty() ? "24h" : options.delay);
  if (!delay) {
    delay.error().where = "--delay";
    return fail(std::move(delay.error()));
  }
  made.delay = *delay;
  if (options.weather.empty())
    return fail(ErrorCode::input, "there is no weather", "--weather", "name the files of the outdoor air");
  if (!(made.delay >= Seconds(0)) || made.delay > Seconds(365 * 86400.0))
    return fail(ErrorCode::input, "the delay is not between 0 and a year", "--delay");
  Unweathered of_train, of_test;
  FLYBALL_ASSIGN(made.train, read_intervals({options.train}, map, options.weather, made.warnings, of_train));
  tell_apart("training", of_train, made.warnings);
  made.on_training = options.evaluate.empty();
  if (made.on_training) {
    hold_half(made.train, made.test);
    of_test = of_train;
  } else {
    FLYBALL_ASSIGN(made.test, read_intervals(options.evaluate, map, options.weather, made.warnings, of_test));
    tell_apart("evaluation", of_test, made.warnings);
  }
  if (made.test.counted.empty())
    return fail(blame({ErrorCode::input,
                       "no hour is left to evaluate",
                       {},
                       "an hour needs four samples, weather, and a load above plant.least_load"},
                      of_test, made.on_training ? options.train : options.evaluate[0]));
  facility::PlantOptions plant;
  plant.delay = made.delay;
  plant.length = kHour;
  auto fitted = facility::PlantBaseline::fit(made.train.counted, plant);
  if (!fitted) return fail(blame(std::move(fitted.error()), of_train, options.train));
  FLYBALL_TRY(check_delay(made));
  foretell(made, *fitted);
  made.train_hours = made.train.counted.size();
  // What is kept has learned all of the training, also where half of it was foretold above.
  if (made.on_training && !(options.keep.empty() && options.reproduce.empty())) {
    made.train.counted.insert(made.train.counted.end(), made.test.counted.begin(), made.test.counted.end());
    fitted = facility::PlantBaseline::fit(made.train.counted, plant);
    if (!fitted) return fail(std::move(fitted.error()));
  }
  if (!(options.keep.empty() && options.reproduce.empty())) {
    fitted->settle();
    FLYBALL_ASSIGN(made.version,
                   keep_version(options,
                                {"plant " + map.format, fitted->text(), facility::hash_of(made.train.counted),
                                 made.train.counted.back().start + kHour},
                                context));
  }
  return made;
}

report::Json to_json(const Outcome& outcome) {
  report::Json made = report::Json::object();
  made["hours"] = outcome.accuracy.intervals;
  made["hourly_mape_fraction"] = report::number(outcome.accuracy.mape_fraction);
  made["nmbe_fraction"] = report::number(outcome.accuracy.nmbe_fraction);
  made["hourly_p95_fraction"] = report::number(outcome.accuracy.p95_fraction);
  made["cvrmse_fraction"] = report::number(outcome.accuracy.cvrmse_fraction);
  made["coverage_fraction"] = report::number(outcome.coverage_fraction());
  return made;
}

report::Json document(const CalibrateOptions& options, const PlantMap& map, const Calibration& made) {
  report::Json json = fit_document("plant", map.format, options, made.on_training, made.delay);
  json["train_hours"] = made.train_hours;
  const report::Json updated = to_json(made.updated);
  for (const auto& [key, value] : updated.items()) json[key] = value;
  json["coverage_level"] = facility::PlantOptions{}.level;
  json["updated"] = updated;
  json["frozen"] = to_json(made.frozen);
  report::Json apart = report::Json::object();
  apart["idle"] = to_json(made.idle);
  apart["too_few_samples_hours"] = made.test.too_few_samples;
  apart["without_weather_hours"] = made.test.without_weather;
  json["apart"] = std::move(apart);
  report::Json model = report::Json::object();
  model["load_middle_w"] = report::number(made.load_middle.value());
  model["load_spread_w"] = report::number(made.load_spread.value());
  model["air_middle_celsius"] = report::number(made.air_middle.value());
  model["air_spread_celsius"] = report::number(made.air_spread.value());
  model["terms"] = report::Json::array();
  for (const auto& term : made.coefficients)
    model["terms"].push_back({{"term", std::string(term.term)},
                              {"value_w", report::number(term.value.value())},
                              {"sd_w", report::number(term.sd.value())}});
  model["memory_weights"] = made.memories;
  json["model"] = std::move(model);
  json["intervals"] = report::Json::array();
  for (std::size_t i = 0; i < made.test.counted.size(); ++i) {
    const facility::PlantForecast& told = made.updated.forecasts[i];
    report::Json one = report::Json::object();
    one["time"] = report::time(made.test.counted[i].start);
    one["measured_w"] = report::number(made.test.counted[i].mean_power().value());
    one["predicted_w"] = report::estimate(
        Estimate{told.power.value(), told.low.value(), told.high.value(), facility::PlantOptions{}.level});
    one["frozen_w"] = report::number(made.frozen.forecasts[i].power.value());
    json["intervals"].push_back(std::move(one));
  }
  json["version"] = version_json(made.version);
  json["warnings"] = report::Json::array();
  for (const std::string& warning : made.warnings) json["warnings"].push_back(report::text(warning));
  return json;
}

std::string text_of(const PlantMap& map, const Calibration& made) {
  using report::Align;
  report::Table table{.caption = fmt::format("{}: learned from {} hours, {} foretold", map.format, made.train_hours,
                                             made.test.counted.size()) +
                                 (made.on_training ? " (the second half)" : ""),
                      .columns = {{"parameters", Align::left},
                                  {"hours", Align::right},
                                  {"MAPE", Align::right},
                                  {"NMBE", Align::right},
                                  {"95th percentile", Align::right},
                                  {"CV(RMSE)", Align::right},
                                  {"inside 90 %", Align::right}},
                      .rows = {}};
  const auto add = [&](const std::string& name, const Outcome& outcome) {
    const facility::Accuracy& a = outcome.accuracy;
    if (a.intervals == 0) return;
    table.rows.push_back({name, std::to_string(a.intervals), format_percent(a.mape_fraction),
                          format_percent(a.nmbe_fraction), format_percent(a.p95_fraction),
                          format_percent(a.cvrmse_fraction), format_percent(outcome.coverage_fraction(), 1)});
  };
  add(fmt::format("updated, {} late", format(made.delay)), made.updated);
  add("frozen after training", made.frozen);
  add("idle hours, frozen", made.idle);
  std::string text = report::to_text(table);
  if (made.test.too_few_samples + made.test.without_weather > 0)
    text += fmt::format("Not counted: {} hours with fewer than four samples, {} without weather\n",
                        made.test.too_few_samples, made.test.without_weather);
  report::Table terms{.caption = fmt::format("Power of one unit about {} of load ({} a step) and {:.1f} °C wet bulb "
                                             "({:.1f} K a step)",
                                             format(made.load_middle), format(made.load_spread),
                                             made.air_middle.value(), made.air_spread.value()),
                      .columns = {{"term", Align::left}, {"power", Align::right}, {"± (1 sd)", Align::right}},
                      .rows = {}};
  for (const auto& term : made.coefficients)
    terms.rows.push_back({std::string(term.term), format(term.value), format(term.sd)});
  text += '\n' + report::to_text(terms);
  text += version_line(made.version);
  return text;
}

}  // namespace

Result<> calibrate_plant(const CalibrateOptions& options, const PlantMap& map, Context& context) {
  FLYBALL_ASSIGN(const Calibration made, calibrate(options, map, context));
  for (const std::string& warning : made.warnings) log::warning("calibrate", "{}", warning);
  return context.out.write(context.options.json ? report::dump(document(options, map, made)) : text_of(map, made));
}

}  // namespace flyball::cli
