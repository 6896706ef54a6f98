#include "facility/attribution.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace flyball::facility {
namespace {

using C = Channel;

/// A channel and which way it goes: +1, −1, or 0 for either. Of a rigid group: by how much for each unit.
struct Mark {
  Channel channel;
  double way = 0;
};

/// One way in which a cause shows.
struct Form {
  Cause cause;
  std::string_view name;
  std::vector<Mark> core;   ///< the first of them must have moved
  std::vector<Mark> rigid;  ///< move in proportion; 0: must stay where they are
  std::vector<Channel> may;
  /// More that speaks for it or against, in log likelihood.
  double (*beside)(const AttributionInput&) = nullptr;
};

const std::vector<Channel> kCooling = {
    C::supply_error, C::chillers,   C::chillers_on,      C::chiller_switches, C::fans,         C::fan_speed,
    C::pumps,        C::pump_speed, C::temperature_rise, C::inlet_level,      C::inlet_pattern};
const std::vector<Channel> kBoards = {C::gpu_power, C::gpu_clock,   C::gpu_temperature,     C::gpu_throttled,
                                      C::tokens,    C::utilisation, C::utilisation_scatter, C::loss_progress};

std::vector<Channel> both(std::vector<Channel> a, std::initializer_list<Channel> b) {
  a.insert(a.end(), b);
  return a;
}

double follows(double part) {
  // A drive that no longer follows hardly changes; one with more to do changes as before or more.
  return std::isnan(part) ? 0 : part > 0.5 ? -8 : 4;
}

/// Waiting for GPUs that others use costs far more pace than utilisation; work of another shape costs both alike.
double waits(const AttributionInput& in) {
  const ChannelShift& tokens = in.shifts[static_cast<std::size_t>(C::tokens)];
  const ChannelShift& used = in.shifts[static_cast<std::size_t>(C::utilisation)];
  if (!tokens.known || !used.known || std::abs(tokens.z) < 3 || std::abs(used.z) < 3) return 0;
  return used.shift / tokens.shift > 0.65 ? -20 : 0;
}

/// That a label changes at that time by chance is worth so much; a step that lies elsewhere costs what it leaves.
double with_software(const AttributionInput& in) {
  constexpr double kTogether = 4, kNotThen = -30;
  if (!in.software_known) return -2;
  return std::isnan(in.software_step) ? kNotThen : std::max(kTogether + std::min(in.software_step, 0.0), kNotThen);
}

std::vector<Form> cooling_forms() {
  return {
      {Cause::cooling_strategy,
       "staging",
       {{C::chillers_on, 0}},
       {},
       both(kCooling, {C::gpu_temperature, C::balance_scatter})},
      {Cause::cooling_strategy, "cycling", {{C::chiller_switches, 1}}, {}, both(kCooling, {C::balance_scatter})},
      {Cause::set_point,
       "set_point",
       {{C::set_point, 0}},
       {},
       both(kCooling, {C::gpu_temperature, C::gpu_throttled, C::balance_scatter})},
      {Cause::fouling,
       "tower",
       {{C::fans, 1}},
       {{C::balance, 0}, {C::fan_speed, 0}},
       {C::chillers, C::chillers_on, C::chiller_switches, C::pumps, C::supply_error, C::temperature_rise},
       [](const AttributionInput& in) { return in.fans_apart < 0.1 ? -3.0 : 2.0; }},
      {Cause::fouling, "condenser", {{C::chillers, 1}}, {{C::balance, 0}}, {C::fans, C::pumps}},
      {Cause::fouling,
       "filter",
       {{C::fan_speed, 1}, {C::fans, 1}},
       {},
       {C::pumps, C::chillers, C::pump_speed},
       [](const AttributionInput& in) { return -follows(in.fans_follow); }},
  };
}

std::vector<Form> machine_forms() {
  return {
      {Cause::fouling,
       "coil",
       {{C::pump_speed, 1}, {C::temperature_rise, -1}},
       {},
       {C::pumps, C::supply_error, C::chillers, C::chillers_on, C::chiller_switches, C::fans},
       [](const AttributionInput& in) { return -follows(in.pumps_follow); }},
      {Cause::fan_or_pump,
       "worn_fan",
       {{C::fans, 1}},
       {{C::balance, 0}, {C::fan_speed, 0}},
       {C::pump_speed, C::pumps, C::temperature_rise, C::chillers},
       [](const AttributionInput& in) { return in.fans_apart < 0.1 ? 2.0 : -3.0; }},
      {Cause::fan_or_pump, "worn_pump", {{C::pumps, 1}}, {{C::balance, 0}, {C::pump_speed, 0}}, {C::chillers, C::fans}},
      {Cause::fan_or_pump,
       "fixed_fan",
       {{C::fan_speed, 1}, {C::inlet_level, -1}, {C::fans, 1}},
       {},
       {C::fans, C::pumps, C::pump_speed, C::temperature_rise, C::chillers, C::inlet_pattern, C::gpu_temperature,
        C::supply_error},
       [](const AttributionInput& in) { return follows(in.fans_follow); }},
      {Cause::fan_or_pump,
       "fixed_pump",
       {{C::pump_speed, 1}, {C::temperature_rise, -1}},
       {},
       {C::pumps, C::supply_error, C::chillers, C::chillers_on, C::chiller_switches, C::fans, C::inlet_level},
       [](const AttributionInput& in) { return follows(in.pumps_follow); }},
  };
}

std::vector<Form> delivery_and_board_forms() {
  return {
      {Cause::ups_mode,
       "ups",
       {},
       {{C::ups_loss, 1}, {C::balance, 0}, {C::delivery_loss, 0}},
       {C::fan_speed, C::pump_speed}},
      {Cause::rack_heat,
       "inlets",
       {{C::inlet_pattern, 1}},
       {},
       both(kBoards, {C::inlet_level, C::gpu_sum, C::rack_sum})},
      {Cause::voltage_sag, "sag", {{C::voltage, -1}}, {}, {C::gpu_sum, C::delivery_loss, C::ups_loss}},
      {Cause::gpu_ageing,
       "errors",
       {{C::link_rate, 1}, {C::ecc_rate, 1}, {C::gpu_power, 1}, {C::gpu_clock, -1}, {C::tokens, -1}},
       {},
       {C::gpu_temperature, C::gpu_throttled, C::loss_progress}},
      {Cause::gpu_ageing, "memory", {{C::ecc_rate, 1}, {C::gpu_power, 1}}, {}, {C::gpu_clock, C::tokens}},
      {Cause::gpu_ageing,
       "power",
       {{C::gpu_power, 1}, {C::gpu_clock, -1}, {C::tokens, -1}},
       {},
       {C::link_rate, C::ecc_rate, C::gpu_temperature, C::gpu_throttled}},
      {Cause::firmware,
       "power",
       {{C::gpu_power, 0}},
       {{C::gpu_sum, 0}},
       {C::gpu_temperature, C::gpu_throttled},
       with_software},
      {Cause::firmware,
       "clock",
       {{C::gpu_clock, -1}, {C::tokens, -1}, {C::gpu_power, -1}},
       {},
       {C::gpu_temperature, C::loss_progress},
       with_software},
  };
}

std::vector<Form> job_forms() {
  return {
      {Cause::scheduling_mix,
       "shared",
       {{C::shared, 1}, {C::tokens, -1}, {C::newcomer, 1}},
       {},
       both(kBoards, {C::restarts, C::gpu_sum, C::gpu_scatter}),
       waits},
      {Cause::scheduling_mix,
       "contention",
       {{C::tokens, -1}, {C::newcomer, 1}, {C::utilisation, -1}},
       {},
       both(kBoards, {C::shared, C::restarts, C::gpu_sum, C::gpu_scatter}),
       waits},
      {Cause::model_behaviour,
       "utilisation",
       {{C::utilisation, -1}, {C::gpu_power, -1}},
       {{C::utilisation, 1}, {C::tokens, 1}},
       {C::utilisation_scatter, C::loss_progress, C::gpu_scatter, C::gpu_temperature}},
      {Cause::model_behaviour,
       "plateau",
       {{C::utilisation_scatter, 1}, {C::loss_progress, 1}, {C::utilisation, -1}},
       {},
       {C::tokens, C::gpu_power, C::gpu_scatter, C::gpu_temperature}},
      {Cause::model_behaviour, "loss", {{C::loss_progress, 1}}, {}, {C::utilisation, C::tokens, C::gpu_power}},
      {Cause::model_behaviour, "restarts", {{C::restarts, 1}}, {}, both(kBoards, {C::gpu_scatter})},
  };
}

std::vector<Form> meter_forms() {
  return {
      {Cause::meter_fault, "utility_w", {}, {{C::balance, 1}, {C::ups_loss, 0}}, {C::balance_scatter, C::repeats}},
      {Cause::meter_fault,
       "it_w",
       {},
       {{C::delivery_loss, -1}, {C::rack_sum, -1}, {C::gpu_sum, 1}},
       {C::delivery_scatter, C::rack_scatter, C::gpu_scatter, C::repeats}},
      {Cause::meter_fault,
       "ups_in_w",
       {},
       {{C::balance, -1}, {C::ups_loss, 1}},
       {C::balance_scatter, C::ups_scatter, C::repeats}},
      {Cause::meter_fault,
       "ups_out_w",
       {},
       {{C::ups_loss, -1}, {C::delivery_loss, 1}},
       {C::ups_scatter, C::delivery_scatter, C::repeats}},
      {Cause::meter_fault,
       "gpu_power_w",
       {{C::gpu_sum, -1}, {C::gpu_power, 1}},
       {},
       {C::gpu_scatter, C::gpu_temperature, C::repeats}},
      {Cause::meter_fault,
       "gpu_power_w",
       {{C::gpu_sum, 1}, {C::gpu_power, -1}},
       {},
       {C::gpu_scatter, C::gpu_temperature, C::repeats}},
      {Cause::meter_fault, "chillers_w", {}, {{C::balance, -1}, {C::chillers, 1}}, {C::balance_scatter}},
      {Cause::meter_fault, "fans_w", {}, {{C::balance, -1}, {C::fans, 1}}, {C::balance_scatter}},
      {Cause::meter_fault, "pumps_w", {}, {{C::balance, -1}, {C::pumps, 1}}, {C::balance_scatter}},
      {Cause::meter_fault,
       "repeats",
       {{C::repeats, 1}},
       {},
       {C::balance, C::ups_loss, C::delivery_loss, C::rack_sum, C::gpu_sum, C::balance_scatter, C::ups_scatter,
        C::delivery_scatter, C::rack_scatter, C::gpu_scatter, C::gpu_power, C::gpu_temperature}},
      {Cause::meter_fault, "chillers_w", {{C::chillers_jitter, 1}}, {}, {C::balance, C::balance_scatter, C::chillers}},
      {Cause::meter_fault, "pumps_w", {{C::pumps_jitter, 1}}, {}, {C::balance, C::balance_scatter, C::pumps}},
      {Cause::meter_fault, "fans_w", {{C::fans_jitter, 1}}, {}, {C::balance, C::balance_scatter, C::fans}},
      {Cause::meter_fault, "scatter", {{C::balance_scatter, 1}}, {}, {C::ups_scatter, C::balance, C::ups_loss}},
      {Cause::meter_fault,
       "scatter",
       {{C::ups_scatter, 1}},
       {},
       {C::balance_scatter, C::delivery_scatter, C::balance, C::ups_loss, C::delivery_loss}},
      {Cause::meter_fault,
       "scatter",
       {{C::delivery_scatter, 1}},
       {},
       {C::ups_scatter, C::rack_scatter, C::gpu_scatter, C::ups_loss, C::delivery_loss, C::rack_sum, C::gpu_sum}},
      {Cause::meter_fault, "scatter", {{C::rack_scatter, 1}}, {}, {C::delivery_scatter, C::gpu_scatter}},
      {Cause::meter_fault,
       "scatter",
       {{C::gpu_scatter, 1}},
       {},
       {C::delivery_scatter, C::rack_scatter, C::gpu_sum, C::gpu_power, C::gpu_temperature}},
  };
}

const std::vector<Form>& forms() {
  static const std::vector<Form> kForms = [] {
    std::vector<Form> all;
    for (auto* make : {&cooling_forms, &machine_forms, &delivery_and_board_forms, &job_forms, &meter_forms})
      for (Form& form : make()) all.push_back(std::move(form));
    return all;
  }();
  return kForms;
}

/// What a channel so far away says, in log likelihood. Bounded: no single one decides against all others.
double evidence(double z) {
  constexpr double kBend = 6, kMost = 60;
  const double a = std::abs(z);
  return std::min(a <= kBend ? a * a / 2 : kBend * a - kBend * kBend / 2, kMost);
}

constexpr double kMoved = 3;      // sd from which a channel counts as moved
constexpr double kRang = 1.5;     // the same of the trigger: that it moved is known by its run, not by its mean
constexpr double kMay = 0.7;      // of its evidence counts where a channel only may follow
constexpr double kOneMore = 0.7;  // for each free size
double least_moved(const AttributionInput& in, Channel channel) { return channel == in.trigger ? kRang : kMoved; }

/// Sizes of one fault in two meters' relations agree within so much; others move by so much of it at most.
constexpr double kTolerance = 0.15, kBeside = 0.03;

struct Scored {
  double score = 0;
  bool possible = false;
  bool explains_trigger = false;
  std::vector<Channel> moved, following;
};

void score_rigid(const Form& form, const AttributionInput& in, Scored& made) {
  double up = 0, down = 0;
  const auto usable = [&](Channel c) {
    const auto i = static_cast<std::size_t>(c);
    return in.shifts[i].known && !in.ignored[i];
  };
  for (const Mark& mark : form.rigid) {
    if (!usable(mark.channel)) continue;
    const ChannelShift& s = in.shifts[static_cast<std::size_t>(mark.channel)];
    up += mark.way * s.shift / (s.sd * s.sd);
    down += mark.way * mark.way / (s.sd * s.sd);
  }
  const double size = down > 0 ? up / down : 0;
  for (const Mark& mark : form.rigid) {
    if (!usable(mark.channel)) continue;
    const ChannelShift& s = in.shifts[static_cast<std::size_t>(mark.channel)];
    const double expected = size * mark.way;
    const double sd = std::hypot(s.sd, mark.way == 0 ? kBeside * size : kTolerance * expected);
    const double left = evidence((s.shift - expected) / sd);
    const bool counted =
        std::any_of(form.core.begin(), form.core.end(), [&](const Mark& core) { return core.channel == mark.channel; });
    made.score += mark.way == 0 || counted ? -left : evidence(s.z) - left;
    if (mark.way == 0) continue;
    if (std::abs(s.z) >= least_moved(in, mark.channel) && s.shift * expected > 0) {
      made.moved.push_back(mark.channel);
      if (form.core.empty()) made.possible = true;
    }
  }
  if (down > 0) made.score -= kOneMore;
}

Scored score_of(const Form& form, const AttributionInput& in) {
  Scored made;
  bool first = true;
  for (const Mark& mark : form.core) {
    const auto i = static_cast<std::size_t>(mark.channel);
    const bool usable = in.shifts[i].known && !in.ignored[i];
    const double z = usable ? in.shifts[i].z : 0;
    const bool right = mark.way == 0 || z * mark.way > 0;
    const bool moved = std::abs(z) >= least_moved(in, mark.channel) && right;
    if (first) made.possible = moved;
    first = false;
    if (!usable) continue;
    made.score += right ? evidence(z) : -evidence(z);
    made.score -= kOneMore;
    if (std::abs(z) < 1.5) made.score -= 2;  // it should have moved
    if (moved) made.moved.push_back(mark.channel);
  }
  score_rigid(form, in, made);
  for (const Mark& mark : form.core)
    if (std::find(made.moved.begin(), made.moved.end(), mark.channel) == made.moved.end())
      made.following.push_back(mark.channel);
  made.following.insert(made.following.end(), form.may.begin(), form.may.end());
  const auto counted = [&](Channel channel) {
    const auto is = [channel](const Mark& mark) { return mark.channel == channel; };
    return std::any_of(form.core.begin(), form.core.end(), is) || std::any_of(form.rigid.begin(), form.rigid.end(), is);
  };
  for (const Channel channel : form.may) {
    const auto i = static_cast<std::size_t>(channel);
    if (!in.shifts[i].known || in.ignored[i] || counted(channel)) continue;
    const double e = evidence(in.shifts[i].z);
    if (e > kMoved * kMoved / 2) made.score += kMay * e - kOneMore;
  }
  if (std::find(form.may.begin(), form.may.end(), in.trigger) != form.may.end()) made.explains_trigger = true;
  if (form.beside != nullptr) made.score += form.beside(in);
  made.explains_trigger = made.explains_trigger || in.trigger == Channel::count ||
                          std::find(made.moved.begin(), made.moved.end(), in.trigger) != made.moved.end();
  return made;
}

}  // namespace

std::vector<Candidate> attribute(const AttributionInput& input) {
  std::map<Cause, Candidate> best;
  for (const Form& form : forms()) {
    Scored scored = score_of(form, input);
    if (!scored.possible || !scored.explains_trigger) continue;
    const auto [entry, fresh] = best.try_emplace(form.cause);
    if (!fresh && entry->second.score >= scored.score) continue;
    entry->second = {form.cause, form.name, scored.score, 0, std::move(scored.moved), std::move(scored.following)};
  }
  std::vector<Candidate> made;
  made.reserve(best.size());
  for (auto& [cause, candidate] : best) made.push_back(std::move(candidate));
  std::sort(made.begin(), made.end(), [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  // Channels are not as independent as their product would have it.
  constexpr double kTemper = 3;
  double sum = 0;
  for (Candidate& each : made) sum += each.probability = std::exp((each.score - made.front().score) / kTemper);
  for (Candidate& each : made) each.probability /= sum;
  return made;
}

}  // namespace flyball::facility
