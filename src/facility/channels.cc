#include "facility/channels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats.h"

namespace flyball::facility {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<ChannelInfo, kChannels> kInfo = {{
    {Channel::balance, "balance", "W", "what comes in less what is used"},
    {Channel::ups_loss, "ups_loss", "W", "loss of the UPS at its output"},
    {Channel::delivery_loss, "delivery_loss", "W", "loss between UPS and racks"},
    {Channel::rack_sum, "rack_sum", "W", "racks less the meter of the whole"},
    {Channel::gpu_sum, "gpu_sum", "W", "IT power at the boards' own power"},
    {Channel::balance_scatter, "balance_scatter", "1", "scatter of what comes in less what is used, logarithm"},
    {Channel::ups_scatter, "ups_scatter", "1", "scatter of the UPS's loss, logarithm"},
    {Channel::delivery_scatter, "delivery_scatter", "1", "scatter of the loss behind the UPS, logarithm"},
    {Channel::rack_scatter, "rack_scatter", "1", "scatter of racks less the meter of the whole, logarithm"},
    {Channel::gpu_scatter, "gpu_scatter", "1", "scatter of IT power over the boards' own, logarithm"},
    {Channel::chillers_jitter, "chillers_jitter", "1", "noise of the chillers' meter in its reading, logarithm"},
    {Channel::pumps_jitter, "pumps_jitter", "1", "noise of the pumps' meter in its reading, logarithm"},
    {Channel::fans_jitter, "fans_jitter", "1", "noise of the fans' meter in its reading, logarithm"},
    {Channel::repeats, "repeats", "1", "readings of a meter of load that repeat the one before"},
    {Channel::set_point, "set_point", "C", "what the cold side should be"},
    {Channel::supply_error, "supply_error", "C", "cold side less what it should be"},
    {Channel::chillers, "chillers", "W", "compressors at the heat and air"},
    {Channel::chillers_on, "chillers_on", "1", "chillers that run at the heat and air"},
    {Channel::chiller_switches, "chiller_switches", "1", "chillers that start or stop, a block"},
    {Channel::fans, "fans", "W", "fans at their speed, the heat and air"},
    {Channel::fan_speed, "fan_speed", "1", "speed of the fans at the heat"},
    {Channel::pumps, "pumps", "W", "pumps at their speed and the chillers that run"},
    {Channel::pump_speed, "pump_speed", "1", "speed of the pumps at the heat"},
    {Channel::temperature_rise, "temperature_rise", "C", "warm side less cold side at the heat"},
    {Channel::inlet_level, "inlet_level", "C", "mean of the racks' inlets less the cold side"},
    {Channel::inlet_pattern, "inlet_pattern", "C", "a rack's inlet among the others', the most"},
    {Channel::gpu_power, "gpu_power", "W", "a board at equal job and phase"},
    {Channel::gpu_clock, "gpu_clock", "Hz", "a board at equal job and phase"},
    {Channel::gpu_temperature, "gpu_temperature", "C", "a board at its power and inlet"},
    {Channel::gpu_throttled, "gpu_throttled", "1", "boards held back by heat or power brake"},
    {Channel::ecc_rate, "ecc_rate", "1/s", "corrected errors of memory"},
    {Channel::link_rate, "link_rate", "1/s", "corrected errors of links"},
    {Channel::tokens, "tokens", "1", "a job's pace at equal share and phase, logarithm"},
    {Channel::utilisation, "utilisation", "1", "a job's utilisation at equal phase, logarithm"},
    {Channel::utilisation_scatter, "utilisation_scatter", "1", "scatter of a job's utilisation within a block"},
    {Channel::loss_progress, "loss_progress", "1", "fall of the training loss in an hour, against runs before"},
    {Channel::restarts, "restarts", "1", "jobs that ran and began again, a block"},
    {Channel::shared, "shared", "1", "GPUs that more than one job has"},
    {Channel::newcomer, "newcomer", "1", "GPUs of types of jobs that hardly ran before"},
    {Channel::voltage, "voltage", "V", "at the racks"},
}};

double value(const SampleBlock& block, Quantity quantity) { return block.at(quantity); }

std::optional<ChannelReading> reading(double y, std::vector<double> x) {
  if (!std::isfinite(y)) return std::nullopt;
  for (const double each : x)
    if (!std::isfinite(each)) return std::nullopt;
  return ChannelReading{y, std::move(x)};
}

/// GPUs that a job works on.
double busy_share(const SampleBlock& block) {
  double busy = 0;
  for (const WorkShare& work : block.work)
    if (work.key.phase != Phase::idle) busy += work.share;
  return busy;
}

/// Checkpoints last for seconds; a phase with less of the time than this says little of itself.
constexpr double kLeastShare = 0.02;

}  // namespace

const ChannelInfo& info_of(Channel channel) { return kInfo[static_cast<std::size_t>(channel)]; }

double ChannelFrame::heat(const SampleBlock& block) const {
  // The middle of what meters of the same power say: one that errs does not move it.
  std::vector<double> said;
  const double it = value(block, Quantity::it), racks = value(block, Quantity::racks) * racks_scale_;
  const double out = value(block, Quantity::ups_out) * out_scale_;
  for (const double each : {it, racks, out})
    if (std::isfinite(each)) said.push_back(each);
  return said.empty() ? kNone : median(said);
}

ChannelFrame ChannelFrame::learn(std::span<const SampleBlock> reference) {
  ChannelFrame frame;
  for (std::size_t i = 0; i < kQuantities; ++i) {
    std::vector<double> values;
    for (const SampleBlock& block : reference)
      if (std::isfinite(block.mean[i])) values.push_back(block.mean[i]);
    frame.middle_[i] = values.empty() ? kNone : median(values);
  }
  const auto scale = [&](Quantity quantity) {
    std::vector<double> ratios;
    for (const SampleBlock& block : reference) {
      const double ratio = value(block, Quantity::it) / value(block, quantity);
      if (std::isfinite(ratio)) ratios.push_back(ratio);
    }
    return ratios.empty() ? 1.0 : median(ratios);
  };
  frame.racks_scale_ = scale(Quantity::racks);
  frame.out_scale_ = scale(Quantity::ups_out);
  std::vector<double> heats;
  for (const SampleBlock& block : reference)
    if (const double heat = frame.heat(block); std::isfinite(heat)) heats.push_back(heat);
  frame.heat_middle_ = heats.empty() ? 1 : std::max(quantile(heats, 0.8), 1.0);
  frame.learn_racks(reference);
  std::map<std::string, std::size_t> seen;
  for (const SampleBlock& block : reference) {
    std::map<std::string, bool> here;
    for (const WorkShare& work : block.work) {
      here[work.key.job_type] = true;
      frame.told_tokens_ = frame.told_tokens_ || work.tokens_per_s > 0;
      frame.told_utilisation_ = frame.told_utilisation_ || work.utilisation > 0;
      frame.told_loss_ = frame.told_loss_ || std::isfinite(work.loss);
    }
    for (const auto& [type, there] : here) seen[type] += there ? 1 : 0;
  }
  constexpr double kUsual = 0.1;
  for (const auto& [type, blocks] : seen)
    if (static_cast<double>(blocks) > kUsual * static_cast<double>(reference.size())) frame.usual_.insert(type);
  return frame;
}

/// Of each rack: how its inlet lies among the others', and what its own power does to it.
void ChannelFrame::learn_racks(std::span<const SampleBlock> reference) {
  const std::size_t count = reference.empty() ? 0 : reference.front().rack_inlet_c.size();
  racks_.assign(count, {});
  std::vector<double> means;
  for (const SampleBlock& block : reference) means.push_back(inlet_mean(block).value_or(kNone));
  for (std::size_t r = 0; r < count; ++r) {
    RunningStats power, away;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      if (r >= reference[i].rack_inlet_c.size()) continue;
      const double y = reference[i].rack_inlet_c[r] - means[i], x = reference[i].rack_power_w[r];
      if (!std::isfinite(y) || !std::isfinite(x)) continue;
      power.add(x);
      away.add(y);
    }
    if (away.count() < 48) continue;
    double products = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      if (r >= reference[i].rack_inlet_c.size()) continue;
      const double y = reference[i].rack_inlet_c[r] - means[i], x = reference[i].rack_power_w[r];
      if (std::isfinite(y) && std::isfinite(x)) products += (x - power.mean()) * (y - away.mean());
    }
    const double squares = power.variance() * static_cast<double>(power.count() - 1);
    racks_[r] = {away.mean(), squares > 0 ? products / squares : 0, power.mean(), true};
  }
}

std::optional<double> ChannelFrame::inlet_mean(const SampleBlock& block) const {
  std::vector<double> inlets;
  for (const float inlet : block.rack_inlet_c)
    if (std::isfinite(inlet)) inlets.push_back(inlet);
  if (inlets.empty()) return std::nullopt;
  return median(inlets);
}

void ChannelFrame::push(const SampleBlock& block) {
  constexpr std::size_t kKept = 8;
  if (!history_.empty() && block.start - history_.back().start > block.length * 1.5) history_.clear();
  history_.push_back(block);
  if (history_.size() > kKept) history_.pop_front();
  constexpr Seconds kAfterBattery = Seconds(1200);
  if (value(block, Quantity::on_battery) > 0) battery_until_ = block.start + kAfterBattery;
  compare_racks();
  compare_work();
  compare_losses();
  for (const WorkShare& work : block.work)
    if (slots_.size() < kSlots || slots_.contains(work.key)) slots_.try_emplace(work.key, slots_.size());
}

void ChannelFrame::begin_again() {
  history_.clear();
  battery_until_ = {};
  for (auto& [type, course] : courses_) {
    course.losses.clear();
    course.last = {};
  }
}

void ChannelFrame::compare_racks() {
  const SampleBlock& block = now();
  pattern_ = kNone;
  const std::optional<double> mean = inlet_mean(block);
  if (!mean) return;
  for (std::size_t r = 0; r < racks_.size() && r < block.rack_inlet_c.size(); ++r) {
    const Rack& rack = racks_[r];
    const double power = block.rack_power_w[r], inlet = block.rack_inlet_c[r];
    if (!rack.known || !std::isfinite(inlet) || !std::isfinite(power)) continue;
    const double away = inlet - *mean - rack.level - rack.power_slope * (power - rack.power_middle);
    if (std::isfinite(pattern_) && away <= pattern_) continue;
    pattern_ = away;
    warmest_ = r;
  }
}

/// Each job against what it did when it was first seen, by logarithms of the rates; told is the one that is furthest
/// from it, for what is wrong with a small job is not to be seen in a mean over all.
void ChannelFrame::compare_work() {
  constexpr std::uint32_t kLearned = 36;
  struct Away {
    double sum = 0, weight = 0;
    void add(double share, double away) {
      sum += share * away;
      weight += share;
    }
  };
  struct OfJob {
    Away tokens, used, scatter;
  };
  std::map<std::string, OfJob> jobs;
  for (const WorkShare& each : now().work) {
    if (each.share < kLeastShare) continue;
    if (each.key.phase != Phase::training && each.key.phase != Phase::rollout) continue;
    Work& work = work_[each.key];
    OfJob& job = jobs[each.key.job_type];
    if (each.tokens_per_s > 0) {
      const double rate = std::log(each.tokens_per_s / each.share);
      if (work.token_blocks >= kLearned) job.tokens.add(each.share, rate - work.tokens);
      if (learning_ || work.token_blocks < kLearned) work.tokens += (rate - work.tokens) / ++work.token_blocks;
    }
    if (each.utilisation > 0) {
      const double use = std::log(each.utilisation);
      if (work.utilisation_blocks >= kLearned) {
        job.used.add(each.share, use - work.utilisation);
        job.scatter.add(each.share, each.utilisation_sd - work.scatter);
      }
      if (learning_ || work.utilisation_blocks < kLearned) {
        ++work.utilisation_blocks;
        work.utilisation += (use - work.utilisation) / work.utilisation_blocks;
        work.scatter += (each.utilisation_sd - work.scatter) / work.utilisation_blocks;
      }
    }
  }
  const auto furthest = [&](Away OfJob::*what) {
    double most = kNone;
    for (const auto& [type, job] : jobs) {
      const double away = (job.*what).sum / (job.*what).weight;  // NaN: not known yet
      if (std::isfinite(away) && !(std::abs(away) <= std::abs(most))) most = away;
    }
    return most;
  };
  tokens_ = furthest(&OfJob::tokens);
  utilisation_ = furthest(&OfJob::used);
  utilisation_scatter_ = furthest(&OfJob::scatter);
}

constexpr double kLossBin = 0.04;
constexpr std::size_t kFallBlocks = 6;
int loss_bin(double loss) { return static_cast<int>(std::floor(loss / kLossBin)); }

/// The part of the expected fall of the loss that did not come, over up to six hours. NaN: too little was to fall, or
/// losses so high were not seen before.
double ChannelFrame::lacking(const std::string& type, const std::deque<double>& losses) const {
  constexpr double kLeastFall = 0.015;
  double expected = 0;
  for (std::size_t i = 1; i < losses.size(); ++i) {
    const auto fall = falls_.find({type, loss_bin(losses[i])});
    if (fall == falls_.end() || fall->second.blocks < kFallBlocks) return kNone;
    expected += fall->second.sum / fall->second.blocks;
  }
  return expected < kLeastFall ? kNone : 1 - (losses.front() - losses.back()) / expected;
}

void ChannelFrame::compare_losses() {
  constexpr double kNewRun = 0.1;
  constexpr std::size_t kLongest = 37, kShortest = 7;
  progress_ = kNone;
  std::map<std::string, std::pair<double, double>> losses;
  for (const WorkShare& work : now().work) {
    if (!std::isfinite(work.loss) || work.key.phase != Phase::training || work.share < kLeastShare) continue;
    losses[work.key.job_type].first += work.share * work.loss;
    losses[work.key.job_type].second += work.share;
  }
  for (const auto& [type, sum] : losses) {
    const double loss = sum.first / sum.second;
    Course& course = courses_[type];
    const bool gap = now().start - course.last > now().length * 1.5;
    if (gap || (!course.losses.empty() && std::abs(loss - course.losses.back()) > kNewRun)) course.losses.clear();
    course.last = now().start;
    course.losses.push_back(loss);
    if (course.losses.size() > kLongest) course.losses.pop_front();
    if (learning_ && course.losses.size() >= kShortest) {
      // By the middle of an hour, so that the noise of one block is not its own condition.
      const std::size_t n = course.losses.size();
      const double hour = (course.losses[n - kShortest] - course.losses[n - 1]) / (kShortest - 1);
      Fall& fall = falls_[{type, loss_bin(course.losses[n - 1 - kShortest / 2])}];
      fall.sum += hour;
      ++fall.blocks;
    }
    if (course.losses.size() < kShortest) continue;
    const double lacks = lacking(type, course.losses);
    if (std::isfinite(lacks) && !(lacks <= progress_)) progress_ = lacks;
  }
}

/// The heat has been the same for as long as the building takes to answer.
bool ChannelFrame::settled() const {
  constexpr std::size_t kBlocks = 4;
  constexpr double kChange = 0.06;
  if (history_.size() < kBlocks) return false;
  double low = heat(now()), high = low;
  for (std::size_t i = history_.size() - kBlocks; i < history_.size(); ++i) {
    const double each = heat(history_[i]);
    if (!std::isfinite(each)) return false;
    low = std::min(low, each);
    high = std::max(high, each);
  }
  return high - low <= kChange * heat_middle_;
}

/// Powers of the racks, neighbours together, in the size of the whole.
std::vector<double> ChannelFrame::groups(const SampleBlock& block) const {
  std::vector<double> made(kGroups, 0);
  const std::size_t racks = block.rack_power_w.size();
  for (std::size_t r = 0; r < racks; ++r) made[r * kGroups / racks] += block.rack_power_w[r] / heat_middle_;
  return made;
}

/// Where the heat is: of the racks' power, the part of the second half. 0: racks are not metered.
double ChannelFrame::place(const SampleBlock& block) const {
  const std::vector<double> power = groups(block);
  double all = 0, second = 0;
  for (std::size_t i = 0; i < kGroups; ++i) {
    all += power[i];
    if (i >= kGroups / 2) second += power[i];
  }
  return all > 0 ? second / all : 0;
}

std::vector<double> ChannelFrame::shares() const {
  std::vector<double> x(kSlots, 0);
  for (const WorkShare& work : now().work) {
    const auto slot = slots_.find(work.key);
    if (slot == slots_.end()) return {kNone};
    x[slot->second] += work.share;
  }
  return x;
}

std::optional<ChannelReading> ChannelFrame::read(Channel channel) const {
  if (channel <= Channel::gpu_sum) return meters(channel);
  if (channel <= Channel::repeats) return scatter(channel);
  if (channel <= Channel::inlet_pattern) return cooling(channel);
  if (channel <= Channel::link_rate) return boards(channel);
  return work(channel);
}

std::optional<ChannelReading> ChannelFrame::meters(Channel channel) const {
  const SampleBlock& b = now();
  const auto at = [&](Quantity quantity) { return value(b, quantity); };
  const auto or_zero = [&](Quantity quantity) { return std::isfinite(at(quantity)) ? at(quantity) : 0; };
  const double it = at(Quantity::it), out = at(Quantity::ups_out);
  const bool on_grid = b.start >= battery_until_ && !(std::abs(at(Quantity::discharged)) > 0.002 * heat_middle_);
  const auto curve = [&](double load) {
    const double l = load / heat_middle_ - 1;
    return std::vector<double>{1, l, l * l};
  };
  switch (channel) {
    case Channel::balance: {
      if (!on_grid) return std::nullopt;
      const double used = at(Quantity::ups_in) + at(Quantity::chillers) + at(Quantity::pumps) + at(Quantity::fans);
      // What else a building uses has its hours.
      std::vector<double> x = curve(heat(b));
      x.resize(x.size() + 24, 0);
      x[3 + static_cast<std::size_t>(std::fmod(b.start.seconds(), 86400.0) / 3600)] = 1;
      // Each meter errs in proportion, within its class.
      for (const Quantity part : {Quantity::chillers, Quantity::pumps, Quantity::fans})
        x.push_back(at(part) / heat_middle_);
      // Storage is behind the UPS where these tell that they are on battery.
      const bool inside = std::isfinite(at(Quantity::on_battery));
      const double came = at(Quantity::utility) + or_zero(Quantity::generated);
      return reading(came + (inside ? 0 : or_zero(Quantity::discharged)) - used, x);
    }
    case Channel::ups_loss:
      if (!on_grid) return std::nullopt;
      return reading(
          at(Quantity::ups_in) + (std::isfinite(at(Quantity::on_battery)) ? or_zero(Quantity::discharged) : 0) - out,
          curve(heat(b)));
    case Channel::delivery_loss:
      return reading(out - it, curve(heat(b)));
    case Channel::rack_sum: {
      std::vector<double> x = groups(b);
      x.push_back(1);
      return reading(at(Quantity::racks) - it, std::move(x));
    }
    case Channel::gpu_sum: {
      const double gpu = at(Quantity::gpu_power) / middle_[static_cast<std::size_t>(Quantity::gpu_power)] - 1;
      const double inlet = inlet_mean(b).value_or(0);
      return reading(it, {1, gpu, gpu * gpu, std::min(busy_share(b), 1.0), inlet == 0 ? 0 : (inlet - 22) / 5});
    }
    default:
      return std::nullopt;
  }
}

std::optional<ChannelReading> ChannelFrame::scatter(Channel channel) const {
  const SampleBlock& b = now();
  const double moved = std::log(1 + 1000 * value(b, Quantity::it_sd) / heat_middle_);
  const auto log_of = [&](Quantity quantity) {
    // Jobs swing each in its way.
    std::vector<double> x = shares();
    x.insert(x.end(), {1, moved, moved * moved});
    return reading(std::log(value(b, quantity)), std::move(x));
  };
  const auto jitter = [&](Quantity noise, Quantity power) {
    // Within its class a meter may do as it likes: rounding comes and goes with the level.
    constexpr double kLeast = 5e-3, kRuns = 1e-3;
    const double level = value(b, power);
    return level < kRuns * heat_middle_ ? std::nullopt : reading(std::log(value(b, noise) / level + kLeast), {1});
  };
  switch (channel) {
    case Channel::balance_scatter:
      return b.start >= battery_until_ ? log_of(Quantity::balance_sd) : std::nullopt;
    case Channel::ups_scatter:
      return b.start >= battery_until_ ? log_of(Quantity::ups_sd) : std::nullopt;
    case Channel::delivery_scatter:
      return log_of(Quantity::delivery_sd);
    case Channel::rack_scatter:
      return log_of(Quantity::racks_sd);
    case Channel::gpu_scatter:
      return log_of(Quantity::gpu_sd);
    case Channel::chillers_jitter:
      return jitter(Quantity::chillers_jitter, Quantity::chillers);
    case Channel::pumps_jitter:
      return jitter(Quantity::pumps_jitter, Quantity::pumps);
    case Channel::fans_jitter:
      return jitter(Quantity::fans_jitter, Quantity::fans);
    default:
      return reading(value(b, Quantity::same), {1});
  }
}

std::optional<ChannelReading> ChannelFrame::cooling(Channel channel) const {
  const SampleBlock& b = now();
  const auto at = [&](Quantity quantity) { return value(b, quantity); };
  if (channel == Channel::set_point) return reading(at(Quantity::set_point), {1});
  if (channel == Channel::inlet_pattern) return reading(pattern_, {1});
  if (!settled()) return std::nullopt;
  const double felt = heat(b);
  const double wet = std::isfinite(at(Quantity::wet_bulb)) ? at(Quantity::wet_bulb) : at(Quantity::dry_bulb);
  const double load = felt / heat_middle_, where = place(b);
  const double fan = at(Quantity::fan_speed), pump = at(Quantity::pump_speed), on = at(Quantity::chillers_on);
  switch (channel) {
    case Channel::supply_error:
      return reading(at(Quantity::supply) - at(Quantity::set_point), {load, where, wet});
    case Channel::chillers:
      // Those that stand still say nothing of how well they run.
      if (on < 0.9) return std::nullopt;
      return std::isfinite(on) ? reading(at(Quantity::chillers), {load, where, wet, on})
                               : reading(at(Quantity::chillers), {load, where, wet});
    case Channel::chillers_on:
      return reading(on, {load, where, wet});
    case Channel::chiller_switches:
      return reading(at(Quantity::switches), {load, where, wet});
    case Channel::fans:
      return reading(at(Quantity::fans), {load, where, wet, std::isfinite(on) ? on : 0});
    case Channel::fan_speed:
      return reading(fan, {load, where});
    case Channel::pumps: {
      std::vector<double> x = {1, load, load * load, load * load * load};
      // The loop of the cold plates follows the heat of its own racks.
      if (std::isfinite(middle_[static_cast<std::size_t>(Quantity::racks)])) {
        const double own = load * where;
        x.insert(x.end(), {own, own * own, own * own * own});
      }
      if (std::isfinite(pump)) x.insert(x.end(), {pump, pump * pump, pump * pump * pump});
      if (std::isfinite(on)) x.insert(x.end(), {std::max(on, 1.0), std::max(on, 2.0)});
      return reading(at(Quantity::pumps), std::move(x));
    }
    case Channel::pump_speed:
      return reading(pump, {load, where});
    case Channel::temperature_rise:
      return reading(at(Quantity::back) - at(Quantity::supply), {load, where});
    case Channel::inlet_level:
      return reading(inlet_mean(b).value_or(kNone) - at(Quantity::supply), {load, where});
    default:
      return std::nullopt;
  }
}

std::optional<ChannelReading> ChannelFrame::boards(Channel channel) const {
  const SampleBlock& b = now();
  const auto at = [&](Quantity quantity) { return value(b, quantity); };
  const double power = at(Quantity::gpu_power) / middle_[static_cast<std::size_t>(Quantity::gpu_power)] - 1;
  const double inlet = inlet_mean(b).value_or(at(Quantity::supply));
  const double warm = std::isfinite(inlet) ? (inlet - 22) / 5 : 0;
  switch (channel) {
    case Channel::gpu_power:
    case Channel::gpu_clock: {
      // Boards that idle say nothing of those that work; where jobs are told, none is idle too. Their level is learned.
      if (!learning_ && !slots_.empty() && busy_share(b) < 0.3) return std::nullopt;
      std::vector<double> x = shares();
      x.push_back(1);
      if (channel == Channel::gpu_power) x.push_back(warm);
      return reading(at(channel == Channel::gpu_power ? Quantity::gpu_power : Quantity::gpu_clock), std::move(x));
    }
    case Channel::gpu_temperature: {
      // Cold plates feel the towers.
      const double wet = std::isfinite(at(Quantity::wet_bulb)) ? at(Quantity::wet_bulb) : 10;
      return reading(at(Quantity::gpu_temperature), {power, place(b), wet});
    }
    case Channel::gpu_throttled:
      return reading(at(Quantity::gpu_throttled), {1});
    case Channel::ecc_rate:
      return reading(at(Quantity::ecc_rate), {1});
    default:
      return reading(at(Quantity::link_rate), {1});
  }
}

std::optional<ChannelReading> ChannelFrame::work(Channel channel) const {
  const SampleBlock& b = now();
  switch (channel) {
    case Channel::tokens:
      return reading(tokens_, {1});
    case Channel::utilisation:
      return reading(utilisation_, {1});
    case Channel::utilisation_scatter:
      return reading(utilisation_scatter_, {1});
    case Channel::loss_progress:
      return reading(progress_, {1});
    case Channel::restarts:
      return reading(value(b, Quantity::starts), {1});
    case Channel::shared:
      return reading(std::max(0.0, value(b, Quantity::jobs) - 1), {1});
    case Channel::newcomer: {
      double share = 0;
      for (const WorkShare& each : b.work)
        if (!usual_.contains(each.key.job_type)) share += each.share;
      return reading(share, {1});
    }
    case Channel::voltage: {
      const double load = heat(b) / heat_middle_ - 1;
      return reading(value(b, Quantity::voltage), {1, std::isfinite(load) ? load : 0});
    }
    default:
      return std::nullopt;
  }
}

}  // namespace flyball::facility
