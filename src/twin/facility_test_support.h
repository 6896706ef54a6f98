#pragma once
// Setups and runs that the building's tests share.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/facility_columns.h"
#include "twin/facility.h"

namespace flyball::twin {

constexpr double kDay = 86400;

inline WeatherSample air_at(const FacilitySetup& setup, double seconds, double wet_bulb_c) {
  return {setup.start + Seconds(seconds), Celsius(wet_bulb_c + 4), Celsius(wet_bulb_c)};
}

/// One large job, air that does not change.
inline FacilitySetup steady(double days, double wet_bulb_c) {
  FacilitySetup setup;
  setup.length = Seconds(days * kDay);
  setup.schedule = single_job("pretrain-large", setup.length);
  setup.weather = {air_at(setup, 0, wet_bulb_c)};
  return setup;
}

inline HarmlessEvent event(const FacilitySetup& setup, HarmlessKind kind, double day, double duration_s) {
  HarmlessEvent e;
  e.kind = kind;
  e.onset = setup.start + Seconds(day * kDay);
  e.duration = Seconds(duration_s);
  return e;
}

inline Facility make(const FacilitySetup& setup) {
  auto facility = Facility::make(setup);
  if (!facility) ADD_FAILURE() << facility.error().message();
  return std::move(*facility);
}

/// Powers are means over the last hour, all else is as it is then.
inline FacilityTruth after(const FacilitySetup& setup, Seconds time) {
  constexpr Watts FacilityTruth::*kPowers[] = {
      &FacilityTruth::utility,   &FacilityTruth::transformer_loss, &FacilityTruth::ups_in, &FacilityTruth::ups_out,
      &FacilityTruth::it,        &FacilityTruth::chillers,         &FacilityTruth::pumps,  &FacilityTruth::fans,
      &FacilityTruth::tower_fans};
  constexpr int kMean = 360;
  Facility facility = make(setup);
  const auto steps = static_cast<int>(time / setup.parameters.period);
  FacilityTruth sum;
  for (int i = 0; i < steps; ++i) {
    facility.step();
    if (i < steps - kMean) continue;
    for (const auto field : kPowers) sum.*field += facility.truth().*field;
  }
  FacilityTruth result = facility.truth();
  for (const auto field : kPowers) result.*field = sum.*field / kMean;
  return result;
}

/// All numbers of all samples; −1e9 where there is none.
inline std::vector<std::vector<double>> columns_of(const FacilitySetup& setup) {
  constexpr double kNone = -1e9;
  Facility facility = make(setup);
  std::vector<std::vector<double>> all;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    const FacilitySample& sample = facility.step();
    std::vector<double>& row = all.emplace_back();
    for (const FacilityColumn& column : facility_columns()) row.push_back(column.get(sample).value_or(kNone));
    for (const RackSample& rack : sample.racks) {
      row.push_back(rack.power ? rack.power->value() : kNone);
      row.push_back(rack.inlet ? rack.inlet->value() : kNone);
    }
    for (const JobShare& job : sample.jobs) row.push_back(job.tokens_per_s.value_or(kNone));
  }
  return all;
}

}  // namespace flyball::twin
