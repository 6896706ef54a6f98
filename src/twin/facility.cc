#include "twin/facility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "twin/facility_cooling.h"
#include "twin/facility_delivery.h"
#include "twin/facility_effects.h"
#include "twin/facility_load.h"
#include "twin/facility_meters.h"

namespace flyball::twin {

namespace {

constexpr double kDay = 86400;
constexpr double kOfficeFrom = 13 * 3600, kOfficeTo = 23 * 3600;  // s of the day, UTC: a working day in Chicago
constexpr double kOfficeMore = 0.5;                               // chosen

std::string software_label(std::uint32_t version) {
  return fmt::format("driver 570.{}, firmware 96.0.{}", 86 + version, 74 + version);
}

/// The schedule with what happens to it: a job ends before its time and another type goes on in its place.
std::vector<ScheduledJob> swapped(std::vector<ScheduledJob> schedule, const FacilitySetup& setup) {
  const std::vector<std::string> types = job_type_names();
  for (const HarmlessEvent& event : setup.harmless) {
    if (event.kind != HarmlessKind::job_swapped || event.first >= schedule.size()) continue;
    const Seconds at = event.onset - setup.start;
    ScheduledJob next = schedule[event.first];
    if (at <= next.start || at >= next.stop) continue;
    schedule[event.first].stop = next.start = at;
    next.type = types[event.count % types.size()];
    schedule.push_back(std::move(next));
  }
  return schedule;
}

}  // namespace

struct Facility::State {
  explicit State(FacilitySetup given)
      : setup(std::move(given)),
        p(setup.parameters),
        weather(setup.weather.empty() ? synthetic_weather(setup.seed, setup.start, setup.length) : setup.weather),
        effects(setup.faults, setup.harmless),
        load(p, swapped(setup.schedule, setup), setup.seed),
        delivery(p.delivery, Random(setup.seed).fork(301)),
        cooling(p, Random(setup.seed).fork(302)),
        meters(p, setup.seed) {
    sample.racks.resize(p.racks());
    settle();
  }

  void settle();
  void step();
  void account(const LoadStep& it, const DeliveryStep& power, const CoolingStep& cool, const WeatherSample& air);
  void show(const LoadStep& it, const DeliveryStep& power, const CoolingStep& cool);

  FacilitySetup setup;
  const FacilityParameters& p;
  WeatherCursor weather;
  FacilityEffects effects;
  FacilityLoad load;
  Delivery delivery;
  Cooling cooling;
  FacilityMeters meters;
  std::uint64_t steps = 0;
  double start_j = 0;
  std::uint32_t software = 0;
  std::string label = software_label(0);
  FacilityTruth truth;
  FacilitySample sample;
};

/// Before the start the GPUs idle.
void Facility::State::settle() {
  effects.move_to(setup.start);
  FacilityLoad idle(p, {}, setup.seed);
  const WeatherSample air = WeatherCursor(weather).at(setup.start);
  const LoadStep& it = idle.step(Seconds(0), effects, cooling.now().inlet_c, cooling.liquid_supply_c(), 1);
  const DeliveryStep power = Delivery(p.delivery, Random(setup.seed)).step(it.it_w, effects, p.period);
  cooling.settle({it.air_w + power.ups_loss_w + power.pdu_loss_w, it.liquid_w, it.rack_air_w}, air, effects);
  start_j = cooling.stored_j();
}

void Facility::State::step() {
  const Seconds since = p.period * static_cast<double>(steps);
  const WallTime middle = setup.start + since + p.period * 0.5;
  effects.move_to(middle);
  WeatherSample air = weather.at(middle);
  air.dry_bulb += Celsius(effects.front());
  air.wet_bulb += Celsius(0.8 * effects.front());  // a front changes the dew point too, less
  const LoadStep& it =
      load.step(since, effects, cooling.now().inlet_c, cooling.liquid_supply_c(), delivery.voltage_fraction());
  const DeliveryStep& power = delivery.step(it.it_w, effects, p.period);
  const CoolingStep& cool =
      cooling.step({it.air_w + power.ups_loss_w + power.pdu_loss_w, it.liquid_w, it.rack_air_w}, air, effects);
  ++steps;
  account(it, power, cool, air);
  show(it, power, cool);
}

void Facility::State::account(const LoadStep& it, const DeliveryStep& power, const CoolingStep& cool,
                              const WeatherSample& air) {
  FacilityTruth& t = truth;
  t.at = setup.start + p.period * static_cast<double>(steps);
  const double of_day = std::fmod((t.at - p.period * 0.5).seconds(), kDay);
  const bool office = of_day >= kOfficeFrom && of_day < kOfficeTo;
  t.other = p.delivery.other * (office ? 1 + kOfficeMore : 1);
  t.it = Watts(it.it_w);
  t.supply_loss = Watts(it.supply_loss_w);
  t.gpus = Watts(it.gpus_w);
  t.pdu_loss = Watts(power.pdu_loss_w);
  t.ups_out = Watts(power.ups_out_w);
  t.ups_loss = Watts(power.ups_loss_w);
  t.ups_in = Watts(power.ups_in_w);
  t.discharged = Watts(power.discharged_w);
  t.chillers = Watts(cool.chillers_w);
  t.pumps = Watts(cool.pumps_w);
  t.fans = Watts(cool.air_fans_w + cool.tower_fans_w);
  const Watts output = t.ups_in + t.chillers + t.pumps + t.fans + t.other;
  t.transformer_loss = Watts(delivery.transformer_loss_w(output.value()));
  t.utility = output + t.transformer_loss;
  t.heat_air = Watts(it.air_w);
  t.heat_liquid = Watts(it.liquid_w);
  t.tower_fans = Watts(cool.tower_fans_w);
  t.rejected = Watts(cool.rejected_w);
  t.stored = Joules(cooling.stored_j() - start_j);
  t.room_supply = Celsius(cool.air_supply_c);
  t.room_back = Celsius(cool.air_back_c);
  t.water_supply = Celsius(cool.water_supply_c);
  t.water_back = Celsius(cool.water_back_c);
  t.tower_water = Celsius(cool.tower_water_c);
  t.dry_bulb = air.dry_bulb;
  t.wet_bulb = air.wet_bulb;
  t.economiser_fraction = cool.water_heat_w > 0 ? cool.economiser_w / cool.water_heat_w : 0;
  t.chillers_on = cool.chillers_on;
  t.tokens += it.tokens;
}

void Facility::State::show(const LoadStep& it, const DeliveryStep& power, const CoolingStep& cool) {
  FacilitySample& s = sample;
  const FacilityTruth& t = truth;
  const HarmlessEvent* late = effects.event(HarmlessKind::late_clock);
  const double most = 0.8 * p.period.value();
  s.at = t.at + Seconds(late == nullptr ? 0 : std::clamp(late->size, -most, most));
  s.utility = t.utility;
  s.generated.reset();
  s.discharged = t.discharged;
  s.ups_in = t.ups_in;
  s.ups_out = t.ups_out;
  s.on_battery = power.on_battery;
  s.voltage = p.delivery.voltage * power.voltage_fraction;
  s.it = t.it;
  s.chillers = t.chillers;
  s.pumps = t.pumps;
  s.fans = t.fans;
  s.chillers_on = static_cast<double>(t.chillers_on);
  s.fan_speed_fraction = cool.fan_speed;
  s.pump_speed_fraction = cool.pump_speed;
  s.supply = t.water_supply;
  s.set_point = Celsius(cool.set_point_c);
  s.back = t.water_back;
  s.dry_bulb = t.dry_bulb;
  s.wet_bulb = t.wet_bulb;
  s.gpu_power = t.gpus / static_cast<double>(p.it.gpus);
  s.gpu_clock = Hertz(it.gpu_clock_hz);
  s.gpu_temperature = Celsius(it.gpu_temperature_c);
  s.gpu_throttled_fraction = it.throttled_fraction;
  s.ecc_errors = it.ecc_errors;
  s.link_errors = it.link_errors;
  for (std::size_t r = 0; r < s.racks.size(); ++r) s.racks[r] = {Watts(it.rack_w[r]), Celsius(cool.inlet_c[r])};
  meters.read(s, effects);
  if (effects.software_version() != software) {
    software = effects.software_version();
    label = software_label(software);
  }
  s.software = label;
  s.jobs = it.jobs;
  if (effects.event(HarmlessKind::missing_samples) == nullptr) return;
  for (const FacilityColumn& column : facility_columns()) column.set(s, {});
  std::fill(s.racks.begin(), s.racks.end(), RackSample{});
  s.software.clear();
  s.jobs.clear();
}

FacilitySetup setup_for(const FaultTrial& trial, FacilityParameters parameters) {
  FacilitySetup setup;
  setup.parameters = parameters;
  setup.weather = trial.weather;
  setup.schedule = trial.schedule;
  setup.faults = trial.faults;
  setup.harmless = trial.harmless;
  setup.start = trial.start;
  setup.length = trial.length;
  setup.seed = trial.seed;
  return setup;
}

Result<Facility> Facility::make(FacilitySetup setup) {
  FLYBALL_TRY(check(setup.parameters));
  if (!(setup.length >= setup.parameters.period && setup.length <= Seconds(3660 * kDay))) {
    return fail(ErrorCode::input, "a building's run takes one step to ten years", "length");
  }
  if (setup.schedule.empty()) setup.schedule = default_schedule(setup.length);
  FLYBALL_TRY(twin::check(setup.schedule));
  return Facility(std::make_unique<State>(std::move(setup)));
}

Facility::Facility(std::unique_ptr<State> state) : state_(std::move(state)) {}
Facility::Facility(Facility&&) noexcept = default;
Facility& Facility::operator=(Facility&&) noexcept = default;
Facility::~Facility() = default;

const FacilitySample& Facility::step() {
  state_->step();
  return state_->sample;
}

const FacilityTruth& Facility::truth() const { return state_->truth; }

std::uint64_t Facility::steps() const {
  return static_cast<std::uint64_t>(std::floor(state_->setup.length / state_->p.period + 1e-9));
}

Result<CoolingRelief> cooling_relief(const FacilitySetup& setup, double gpu_power_scale) {
  FacilitySetup scaled = setup;
  scaled.parameters.it.gpu_power_scale *= gpu_power_scale;
  FLYBALL_ASSIGN(Facility as_is, Facility::make(setup));
  FLYBALL_ASSIGN(Facility saving, Facility::make(std::move(scaled)));
  CoolingRelief relief;
  const Seconds period = setup.parameters.period;
  for (std::uint64_t i = 0; i < as_is.steps(); ++i) {
    as_is.step();
    saving.step();
    const FacilityTruth &a = as_is.truth(), &b = saving.truth();
    const Watts cooling = (a.chillers + a.pumps + a.fans) - (b.chillers + b.pumps + b.fans);
    const Watts total = a.total() - b.total(), gpus = a.gpus - b.gpus;
    relief.gpus += gpus * period;
    relief.cooling += cooling * period;
    relief.delivery += (total - cooling - gpus) * period;
  }
  if (relief.gpus.value() == 0) return fail(ErrorCode::input, "the GPUs save nothing", "gpu_power_scale");
  relief.delivery_fraction = relief.delivery / relief.gpus;
  relief.cooling_fraction = relief.cooling / relief.gpus;
  return relief;
}

}  // namespace flyball::twin
