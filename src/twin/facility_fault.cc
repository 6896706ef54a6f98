#include "twin/facility_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "twin/facility_forms.h"

namespace flyball::twin {

namespace {

constexpr double kHour = 3600, kDay = 86400;

// least: what one day's means can tell from the drift of jobs (0.14 % a day from 0.5 % an hour), the resolution of
// thermometers (0.1 K) and the noise of meters, three times over; where a counter or a label shows it as well, less.
constexpr FormRow kForms[] = {
    // form, name, cause, trace, least, low, high, either sign, shortest and longest ramp, shortest and longest time
    {FaultForm::economiser_closed, "economiser_closed", Cause::cooling_strategy, Trace::chillers, 1, 1, 1, false, 0, 0,
     1 * kDay, 8 * kDay},
    {FaultForm::extra_chillers, "extra_chillers", Cause::cooling_strategy, Trace::chillers, 1, 1, 2, false, 0, 0,
     6 * kHour, 5 * kDay},
    {FaultForm::set_point_shift, "set_point_shift", Cause::set_point, Trace::chillers, 0.5, 1, 4, true, 0, 2 * kHour,
     12 * kHour, 10 * kDay},
    {FaultForm::fouled_tower, "fouled_tower", Cause::fouling, Trace::towers, 0.15, 0.4, 1.5, false, 12 * kHour,
     5 * kDay, 30 * kDay, 30 * kDay},
    {FaultForm::fouled_condenser, "fouled_condenser", Cause::fouling, Trace::chillers, 0.3, 0.8, 3, false, 12 * kHour,
     5 * kDay, 30 * kDay, 30 * kDay},
    {FaultForm::fouled_filter, "fouled_filter", Cause::fouling, Trace::fans, 0.05, 0.15, 0.8, false, 12 * kHour,
     5 * kDay, 30 * kDay, 30 * kDay},
    {FaultForm::fouled_coil, "fouled_coil", Cause::fouling, Trace::pumps, 0.03, 0.1, 0.4, false, 12 * kHour, 5 * kDay,
     30 * kDay, 30 * kDay},
    {FaultForm::worn_fan, "worn_fan", Cause::fan_or_pump, Trace::fans, 0.05, 0.12, 0.6, false, 0, 2 * kDay, 30 * kDay,
     30 * kDay},
    {FaultForm::worn_pump, "worn_pump", Cause::fan_or_pump, Trace::pumps, 0.04, 0.12, 0.6, false, 0, 2 * kDay,
     30 * kDay, 30 * kDay},
    {FaultForm::fixed_fan, "fixed_fan", Cause::fan_or_pump, Trace::fans, 0.9, 0.9, 1, false, 0, 0, 12 * kHour,
     10 * kDay},
    {FaultForm::fixed_pump, "fixed_pump", Cause::fan_or_pump, Trace::pumps, 0.9, 0.9, 1, false, 0, 0, 12 * kHour,
     10 * kDay},
    {FaultForm::ups_eco, "ups_eco", Cause::ups_mode, Trace::ups, 1, 1, 1, false, 0, 0, 6 * kHour, 10 * kDay},
    {FaultForm::ups_redundancy_lost, "ups_redundancy_lost", Cause::ups_mode, Trace::ups, 1, 1, 1, false, 0, 0,
     6 * kHour, 10 * kDay},
    {FaultForm::recirculation, "recirculation", Cause::rack_heat, Trace::racks, 0.8, 2, 9, false, 0, 12 * kHour,
     12 * kHour, 15 * kDay},
    {FaultForm::sag, "sag", Cause::voltage_sag, Trace::voltage, 0.01, 0.03, 0.12, false, 0, 0, 3 * kHour, 3 * kDay},
    {FaultForm::ageing, "ageing", Cause::gpu_ageing, Trace::gpus, 0.01, 0.025, 0.1, false, 2 * kDay, 8 * kDay,
     30 * kDay, 30 * kDay},
    {FaultForm::firmware_power, "firmware_power", Cause::firmware, Trace::gpus, 0.01, 0.02, 0.08, true, 0, 0, 30 * kDay,
     30 * kDay},
    {FaultForm::firmware_clock, "firmware_clock", Cause::firmware, Trace::gpus, 0.01, 0.03, 0.12, false, 0, 0,
     30 * kDay, 30 * kDay},
    {FaultForm::co_scheduled, "co_scheduled", Cause::scheduling_mix, Trace::jobs, 0.02, 0.06, 0.4, false, 0, 0,
     12 * kHour, 6 * kDay},
    {FaultForm::plateau, "plateau", Cause::model_behaviour, Trace::jobs, 0.04, 0.08, 0.35, false, 0, 6 * kHour,
     12 * kHour, 6 * kDay},
    {FaultForm::short_sequences, "short_sequences", Cause::model_behaviour, Trace::jobs, 0.015, 0.04, 0.2, false, 0, 0,
     12 * kHour, 8 * kDay},
    {FaultForm::restarts, "restarts", Cause::model_behaviour, Trace::jobs, 3, 8, 40, false, 0, 0, 1 * kDay, 5 * kDay},
    {FaultForm::meter_scale, "meter_scale", Cause::meter_fault, Trace::meter, 0.01, 0.03, 0.4, true, 0, 0, 1 * kDay,
     30 * kDay},
    {FaultForm::meter_drift, "meter_drift", Cause::meter_fault, Trace::meter, 0.01, 0.03, 0.15, true, 2 * kDay,
     8 * kDay, 30 * kDay, 30 * kDay},
    {FaultForm::meter_stuck, "meter_stuck", Cause::meter_fault, Trace::meter, 1, 1, 1, false, 0, 0, 3 * kHour,
     5 * kDay},
    {FaultForm::meter_deci, "meter_deci", Cause::meter_fault, Trace::meter, 0.1, 0.1, 10, false, 0, 0, 1 * kHour,
     10 * kDay},
    {FaultForm::meter_late, "meter_late", Cause::meter_fault, Trace::meter, 30, 60, 600, false, 0, 0, 1 * kDay,
     10 * kDay},
    {FaultForm::meter_noisy, "meter_noisy", Cause::meter_fault, Trace::meter, 0.005, 0.02, 0.1, false, 0, 0, 1 * kDay,
     10 * kDay},
};

constexpr std::pair<HarmlessKind, std::string_view> kHarmless[] = {
    {HarmlessKind::software_update, "software_update"},
    {HarmlessKind::weather_front, "weather_front"},
    {HarmlessKind::chiller_rotation, "chiller_rotation"},
    {HarmlessKind::rack_drained, "rack_drained"},
    {HarmlessKind::ups_test, "ups_test"},
    {HarmlessKind::missing_samples, "missing_samples"},
    {HarmlessKind::late_clock, "late_clock"},
    {HarmlessKind::job_swapped, "job_swapped"},
};

}  // namespace

const FormRow& form_row(FaultForm form) {
  return *std::find_if(std::begin(kForms), std::end(kForms), [form](const FormRow& row) { return row.form == form; });
}

std::string_view to_string(FaultForm form) { return form_row(form).name; }

Result<FaultForm> parse_fault_form(std::string_view text) {
  for (const FormRow& row : kForms)
    if (row.name == text) return row.form;
  return fail(ErrorCode::input, "'" + std::string(text.substr(0, 40)) + "' is no form of a fault");
}

Cause cause_of(FaultForm form) { return form_row(form).cause; }

std::vector<FaultForm> fault_forms() {
  std::vector<FaultForm> all;
  for (const FormRow& row : kForms) all.push_back(row.form);
  return all;
}

double least_size(FaultForm form) { return form_row(form).least; }

Result<> check_fault_size(FaultForm form, double size) {
  const FormRow& row = form_row(form);
  const double most = 10 * row.high;
  if (size != 0 && std::fabs(size) <= most && (size > 0 || row.either_sign)) return {};
  return fail(
      ErrorCode::input,
      fmt::format("{} is not {}above 0 and at most {}", size, row.either_sign ? "(or its negative) " : "", most), {},
      fmt::format("{} can be told from noise from {} on", row.name, row.least));
}

double FacilityFault::share_at(WallTime t) const {
  if (t < onset || t >= end()) return 0;
  const Seconds since = t - onset;
  return since >= ramp ? 1 : since / ramp;
}

std::string to_string(const FacilityFault& fault) {
  std::string text = fmt::format("{} {} from {} over {} h", to_string(fault.form), format_exact(fault.size),
                                 format_rfc3339(fault.onset), format_exact(fault.duration.value() / kHour));
  if (fault.ramp > Seconds(0)) text += fmt::format(", ramp {} h", format_exact(fault.ramp.value() / kHour));
  if (!fault.where.empty()) text += ", " + fault.where;
  if (fault.count > 0) text += fmt::format(", racks {} to {}", fault.first, fault.first + fault.count - 1);
  return text;
}

std::string_view to_string(HarmlessKind kind) {
  for (const auto& [value, name] : kHarmless)
    if (value == kind) return name;
  return "unknown";
}

std::string to_text(const FaultTrial& trial) {
  std::string text = fmt::format("trial {} seed {} from {} over {} d\n", trial.number, trial.seed,
                                 format_rfc3339(trial.start), format_exact(trial.length.value() / kDay));
  for (const FacilityFault& fault : trial.faults) {
    text += fmt::format("fault {}: {}; strength {}; {}\n", to_string(fault.cause()), to_string(fault),
                        format_exact(fault.strength),
                        fault.identifiable ? "identifiable" : "not identifiable: " + fault.why);
  }
  for (const HarmlessEvent& event : trial.harmless) {
    text += fmt::format("harmless {} from {} over {} s, size {}, {} {}\n", to_string(event.kind),
                        format_rfc3339(event.onset), format_exact(event.duration.value()), format_exact(event.size),
                        event.first, event.count);
  }
  return text;
}

}  // namespace flyball::twin
