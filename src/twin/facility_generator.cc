// Draws trials and judges, from what a form is and when it happens, whether anybody could tell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "twin/facility_fault.h"
#include "twin/facility_forms.h"

namespace flyball::twin {

namespace {

constexpr double kHour = 3600, kDay = 86400;
constexpr double kToTheEnd = 30 * kDay;
constexpr double kEnough = 12;            // h at the whole size, for what shows all the time
constexpr double kWarm = 15, kCold = 11;  // °C wet bulb: chillers run surely above; free cooling does it all below

constexpr Cause kCauses[] = {Cause::cooling_strategy, Cause::set_point,       Cause::fouling,
                             Cause::fan_or_pump,      Cause::ups_mode,        Cause::rack_heat,
                             Cause::voltage_sag,      Cause::gpu_ageing,      Cause::firmware,
                             Cause::scheduling_mix,   Cause::model_behaviour, Cause::meter_fault};
constexpr std::string_view kMeters[] = {"utility_w",   "it_w",       "ups_in_w", "ups_out_w",
                                        "gpu_power_w", "chillers_w", "fans_w",   "pumps_w"};
constexpr std::size_t kQuickMeters = 5;  // the first ones: those that follow the load at once
constexpr HarmlessKind kKinds[] = {HarmlessKind::software_update,  HarmlessKind::weather_front,
                                   HarmlessKind::chiller_rotation, HarmlessKind::rack_drained,
                                   HarmlessKind::ups_test,         HarmlessKind::missing_samples,
                                   HarmlessKind::late_clock,       HarmlessKind::job_swapped};

double log_uniform(Random& random, double low, double high) {
  return low * std::exp(std::log(high / low) * random.uniform());
}
/// Times in whole seconds: a record of truth that can be read.
Seconds draw_seconds(Random& random, double low, double high) {
  return Seconds(high <= low ? low : std::round(log_uniform(random, std::max(low, 1.0), high)));
}

bool of_jobs(FaultForm form) {
  return form == FaultForm::plateau || form == FaultForm::short_sequences || form == FaultForm::restarts;
}

bool needs_jobs(FaultForm form) {
  const Cause cause = cause_of(form);
  return cause == Cause::gpu_ageing || cause == Cause::firmware || cause == Cause::scheduling_mix;
}

class Draw {
 public:
  Draw(const FaultOptions& options, FaultTrial& trial, Random random)
      : options_(options),
        trial_(trial),
        random_(random),
        weather_(trial.weather.empty() ? synthetic_weather(trial.seed, trial.start, trial.length) : trial.weather),
        schedule_(trial.schedule.empty() ? default_schedule(trial.length) : trial.schedule) {}

  void all() {
    const double dice = random_.uniform();
    const double none = options_.none_fraction;
    const int wanted = dice < none ? 0 : dice < none + options_.pair_fraction ? 2 : 1;
    while (static_cast<int>(trial_.faults.size()) < wanted) {
      FacilityFault next = fault();
      if (trial_.faults.empty() || trial_.faults[0].cause() != next.cause()) trial_.faults.push_back(std::move(next));
    }
    for (FacilityFault& each : trial_.faults) judge(each);
    judge_pair();
    harmless();
  }

 private:
  FaultForm form() {
    const Cause cause = kCauses[random_.below(std::size(kCauses))];
    std::vector<FaultForm> forms;
    for (const FaultForm each : fault_forms())
      if (cause_of(each) == cause) forms.push_back(each);
    return forms[random_.below(forms.size())];
  }

  FacilityFault fault() {
    FacilityFault f;
    f.form = form();
    const FormRow& row = form_row(f.form);
    const double room = (trial_.length - options_.quiet - options_.tail).value();
    f.onset = trial_.start + options_.quiet + Seconds(std::floor(random_.uniform(0, std::max(0.0, room))));
    f.ramp = row.longest_ramp_s <= 0 ? Seconds(0) : draw_seconds(random_, row.shortest_ramp_s, row.longest_ramp_s);
    const Seconds rest = trial_.start + trial_.length - f.onset;
    f.duration =
        row.shortest_s >= kToTheEnd ? rest : std::min(rest, draw_seconds(random_, row.shortest_s, row.longest_s));
    f.ramp = std::min(f.ramp, f.duration);
    size(f, row);
    place(f);
    return f;
  }

  void size(FacilityFault& f, const FormRow& row) {
    if (f.form == FaultForm::meter_deci) {
      f.size = random_.chance(0.5) ? 10 : 0.1;
    } else if (f.form == FaultForm::extra_chillers) {
      f.size = static_cast<double>(1 + random_.below(2));
    } else if (row.low == row.high) {
      f.size = row.low;
    } else {
      f.size = random_.chance(options_.too_small_fraction) && row.low > row.least
                   ? log_uniform(random_, 0.05 * row.least, 0.5 * row.least)
                   : log_uniform(random_, row.low, row.high);
      if (row.either_sign && random_.chance(0.5)) f.size = -f.size;
    }
  }

  void place(FacilityFault& f) {
    if (f.form == FaultForm::recirculation) {
      f.count = static_cast<std::uint32_t>(1 + random_.below(std::min<std::uint32_t>(4, options_.racks)));
      f.first = static_cast<std::uint32_t>(random_.below(options_.racks - f.count + 1));
    } else if (f.cause() == Cause::meter_fault) {
      const bool quick = f.form == FaultForm::meter_late;
      f.where = kMeters[random_.below(quick ? kQuickMeters : std::size(kMeters))];
    } else if (of_jobs(f.form)) {
      // A type that is scheduled then, if any is.
      std::vector<std::string> types;
      for (const ScheduledJob& job : schedule_) {
        if (trial_.start + job.start < f.end() && f.onset < trial_.start + job.stop && job.type != "batch-inference")
          types.push_back(job.type);
      }
      f.where = types.empty() ? "pretrain-large" : types[random_.below(types.size())];
    }
  }

  /// Hours of the fault at its whole size (of a ramp: from the middle on) in which `holds` is true of the hour.
  template <class Holds>
  double hours(const FacilityFault& f, Holds holds) const {
    double sum = 0;
    const WallTime end = std::min(f.end(), trial_.start + trial_.length);
    for (WallTime t = f.onset + f.ramp * 0.5; t < end; t = t + Seconds(kHour)) sum += holds(t) ? 1 : 0;
    return sum;
  }
  double hours_of_air(const FacilityFault& f, double low, double high) const {
    WeatherCursor air(weather_);
    return hours(f, [&](WallTime t) {
      const double wet = air.at(t).wet_bulb.value();
      return wet >= low && wet < high;
    });
  }
  double hours_of_jobs(const FacilityFault& f, const std::string& type) const {
    return hours(f, [&](WallTime t) {
      return std::any_of(schedule_.begin(), schedule_.end(), [&](const ScheduledJob& job) {
        return (type.empty() || job.type == type) && trial_.start + job.start <= t && t < trial_.start + job.stop;
      });
    });
  }

  void judge(FacilityFault& f) const {
    const FormRow& row = form_row(f.form);
    const WallTime end = std::min(f.end(), trial_.start + trial_.length);
    const Seconds lasted = end - f.onset;
    const double reached = f.ramp > lasted ? lasted / f.ramp : 1;
    const bool whole_or_not =
        row.low == row.high || f.form == FaultForm::extra_chillers || f.form == FaultForm::meter_deci;
    f.strength = whole_or_not ? lasted / Seconds(kEnough * kHour) : std::abs(f.size) * reached / row.least;
    const auto cannot = [&f](std::string why) {
      f.identifiable = false;
      f.why = std::move(why);
    };
    const double whole = hours(f, [](WallTime) { return true; });
    if (!whole_or_not && f.strength < 1) {
      cannot("too small against noise");
    } else if (whole < std::min(kEnough, row.shortest_s / kHour)) {
      cannot("too short at its size");
    } else if (f.form == FaultForm::economiser_closed && hours_of_air(f, -100, kCold) < kEnough) {
      cannot("too warm for free cooling all the while");
    } else if ((f.form == FaultForm::fouled_condenser || f.where == "chillers_w") &&
               hours_of_air(f, kWarm, 100) < kEnough) {
      cannot("chillers hardly run");
    } else if (of_jobs(f.form) && hours_of_jobs(f, f.where) < kEnough / 2) {
      cannot("its job hardly runs");
    } else if (needs_jobs(f.form) && hours_of_jobs(f, "") < kEnough) {
      cannot("hardly a job runs");
    }
  }

  /// Of two that show in one place and begin within a day of each other the weaker one has no trace of its own.
  void judge_pair() const {
    if (trial_.faults.size() < 2) return;
    FacilityFault& a = trial_.faults[0];
    FacilityFault& b = trial_.faults[1];
    const Trace trace = form_row(a.form).trace;
    if (trace != form_row(b.form).trace || a.where != b.where) return;
    const double apart = std::abs((a.onset - b.onset).value());
    if (apart > kDay + std::max(a.ramp, b.ramp).value()) return;
    FacilityFault& weaker = a.strength < b.strength ? a : b;
    weaker.identifiable = false;
    weaker.why = fmt::format("same trace as {} at the same time", to_string((&weaker == &a ? b : a).form));
  }

  void harmless() {
    double at = 0;
    while (options_.harmless_per_day > 0) {
      at += -std::log(1 - random_.uniform()) * kDay / options_.harmless_per_day;
      if (at >= (trial_.length - Seconds(kHour)).value()) break;
      event(trial_.start + Seconds(std::floor(at / 10) * 10));
    }
  }

  void event(WallTime onset) {
    HarmlessEvent e;
    e.kind = kKinds[random_.below(std::size(kKinds))];
    e.onset = onset;
    const double sign = random_.chance(0.5) ? 1 : -1;
    switch (e.kind) {
      case HarmlessKind::weather_front:
        e.duration = draw_seconds(random_, 12 * kHour, 2 * kDay);
        e.size = sign * random_.uniform(4, 9);
        break;
      case HarmlessKind::rack_drained:
        e.duration = draw_seconds(random_, kHour, 8 * kHour);
        e.count = static_cast<std::uint32_t>(1 + random_.below(std::min<std::uint32_t>(3, options_.racks)));
        e.first = static_cast<std::uint32_t>(random_.below(options_.racks - e.count + 1));
        break;
      case HarmlessKind::ups_test:
        e.duration = Seconds(10.0 * static_cast<double>(30 + random_.below(61)));
        break;
      case HarmlessKind::missing_samples:
        e.duration = draw_seconds(random_, 60, 2 * kHour);
        break;
      case HarmlessKind::late_clock:
        e.duration = draw_seconds(random_, 600, 6 * kHour);
        e.size = sign * random_.uniform(2, 8);
        break;
      case HarmlessKind::job_swapped:
        e.first = static_cast<std::uint32_t>(random_.below(schedule_.size()));
        e.count = static_cast<std::uint32_t>(random_.below(job_type_names().size()));
        swap(e);
        break;
      case HarmlessKind::software_update:
      case HarmlessKind::chiller_rotation:
        e.duration = trial_.start + trial_.length - onset;
        e.count = static_cast<std::uint32_t>(random_.below(16));
        break;
    }
    trial_.harmless.push_back(e);
  }

  /// Somewhere in the middle of its job.
  void swap(HarmlessEvent& e) {
    const ScheduledJob& job = schedule_[e.first];
    const Seconds length = job.stop - job.start;
    e.onset = trial_.start + job.start + Seconds(std::floor(length.value() * random_.uniform(0.3, 0.7) / 10) * 10);
    e.duration = trial_.start + job.stop - e.onset;
  }

  const FaultOptions& options_;
  FaultTrial& trial_;
  Random random_;
  std::vector<WeatherSample> weather_;
  std::vector<ScheduledJob> schedule_;
};

}  // namespace

FaultGenerator::FaultGenerator(std::uint64_t seed, FaultOptions options) : seed_(seed), options_(std::move(options)) {}

FaultTrial FaultGenerator::trial(std::uint64_t number) const {
  Random random = Random(seed_).fork(number + 1);
  FaultTrial trial;
  trial.number = number;
  trial.seed = random.bits() >> 1;  // fits whatever holds seeds
  trial.start = options_.start;
  trial.length = options_.length;
  trial.weather = options_.weather;
  trial.schedule = options_.schedule;
  Draw(options_, trial, random.fork(1)).all();
  return trial;
}

}  // namespace flyball::twin
