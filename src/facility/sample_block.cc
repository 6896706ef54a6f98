#include "facility/sample_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/stats.h"
#include "base/text.h"

namespace flyball::facility {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint32_t kFewest = 3;

constexpr std::array<std::string_view, kQuantities> kNames = {"utility",
                                                              "generated",
                                                              "discharged",
                                                              "ups_in",
                                                              "ups_out",
                                                              "voltage",
                                                              "voltage_least",
                                                              "it",
                                                              "racks",
                                                              "chillers",
                                                              "pumps",
                                                              "fans",
                                                              "chillers_on",
                                                              "fan_speed",
                                                              "pump_speed",
                                                              "supply",
                                                              "set_point",
                                                              "back",
                                                              "dry_bulb",
                                                              "wet_bulb",
                                                              "gpu_power",
                                                              "gpu_clock",
                                                              "gpu_temperature",
                                                              "gpu_throttled",
                                                              "ecc_rate",
                                                              "link_rate",
                                                              "on_battery",
                                                              "jobs",
                                                              "starts",
                                                              "switches",
                                                              "it_sd",
                                                              "balance_sd",
                                                              "ups_sd",
                                                              "delivery_sd",
                                                              "racks_sd",
                                                              "gpu_sd",
                                                              "same",
                                                              "chillers_jitter",
                                                              "pumps_jitter",
                                                              "fans_jitter"};

/// Types of jobs may hold any character.
std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || c == '%' || c == ';' || c == '~' || byte == 127) {
      made += fmt::format("%{:02x}", byte);
    } else {
      made += c;
    }
  }
  return made.empty() ? "~" : made;
}

Result<std::string> unescaped(std::string_view text) {
  if (text == "~") return std::string();
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      made += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return fail(ErrorCode::failed, "a word is cut");
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    made += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return made;
}

std::string number(double value) { return std::isnan(value) ? "-" : format_exact(value); }
std::string number(float value) { return std::isnan(value) ? "-" : fmt::format("{}", value); }

template <class Value>
std::optional<double> value_of(const std::optional<Value>& field) {
  if (!field) return std::nullopt;
  if constexpr (std::is_arithmetic_v<Value>) {
    return static_cast<double>(*field);
  } else {
    return field->value();
  }
}

/// Words of a line, one after the other.
class Words {
 public:
  explicit Words(std::string_view line) : words_(split(line, ' ')) {}
  Result<std::string_view> next() {
    if (at_ >= words_.size()) return fail(ErrorCode::failed, "the line of a block is cut");
    return words_[at_++];
  }
  Result<double> number() {
    FLYBALL_ASSIGN(const std::string_view word, next());
    if (word == "-") return kNone;
    return parse_double(word);
  }
  Result<std::size_t> count(std::size_t most) {
    FLYBALL_ASSIGN(const std::string_view word, next());
    FLYBALL_ASSIGN(const std::int64_t value, parse_int(word));
    if (value < 0 || static_cast<std::size_t>(value) > most)
      return fail(ErrorCode::failed, "the line of a block holds an impossible number");
    return static_cast<std::size_t>(value);
  }
  bool at_end() const { return at_ == words_.size(); }

 private:
  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
};

constexpr std::size_t kMost = 10'000;
/// Of a block, whatever its samples are: the middle of so many is known well enough.
constexpr std::size_t kBends = 600;

}  // namespace

std::string_view to_string(Quantity quantity) {
  const auto i = static_cast<std::size_t>(quantity);
  return i < kNames.size() ? kNames[i] : "unknown";
}

std::string to_line(const SampleBlock& block) {
  std::string line =
      fmt::format("{} {} {}", block.start.nanoseconds(), format_exact(block.length.value()), block.samples);
  for (const double value : block.mean) line += ' ' + number(value);
  line += fmt::format(" {}", block.rack_power_w.size());
  for (const float value : block.rack_power_w) line += ' ' + number(value);
  line += fmt::format(" {}", block.rack_inlet_c.size());
  for (const float value : block.rack_inlet_c) line += ' ' + number(value);
  line += fmt::format(" {}", block.work.size());
  for (const WorkShare& work : block.work)
    line += fmt::format(" {} {} {} {} {} {} {}", escaped(work.key.job_type), to_string(work.key.phase),
                        number(work.share), number(work.tokens_per_s), number(work.utilisation),
                        number(work.utilisation_sd), number(work.loss));
  return line + ' ' + escaped(block.software);
}

Result<SampleBlock> block_from_line(std::string_view line) {
  Words words(line);
  SampleBlock block;
  FLYBALL_ASSIGN(const std::string_view start, words.next());
  FLYBALL_ASSIGN(const std::int64_t start_ns, parse_int(start));
  block.start = WallTime(start_ns);
  FLYBALL_ASSIGN(const double length, words.number());
  block.length = Seconds(length);
  FLYBALL_ASSIGN(const std::size_t samples, words.count(100'000'000));
  block.samples = static_cast<std::uint32_t>(samples);
  for (double& value : block.mean) {
    FLYBALL_ASSIGN(value, words.number());
  }
  for (std::vector<float>* racks : {&block.rack_power_w, &block.rack_inlet_c}) {
    FLYBALL_ASSIGN(const std::size_t count, words.count(kMost));
    for (std::size_t i = 0; i < count; ++i) {
      FLYBALL_ASSIGN(const double value, words.number());
      racks->push_back(static_cast<float>(value));
    }
  }
  FLYBALL_ASSIGN(const std::size_t works, words.count(kMost));
  for (std::size_t i = 0; i < works; ++i) {
    WorkShare work;
    FLYBALL_ASSIGN(const std::string_view type, words.next());
    FLYBALL_ASSIGN(work.key.job_type, unescaped(type));
    FLYBALL_ASSIGN(const std::string_view phase, words.next());
    FLYBALL_ASSIGN(work.key.phase, parse_phase(phase));
    for (double* value : {&work.share, &work.tokens_per_s, &work.utilisation, &work.utilisation_sd, &work.loss}) {
      FLYBALL_ASSIGN(*value, words.number());
    }
    block.work.push_back(std::move(work));
  }
  FLYBALL_ASSIGN(const std::string_view software, words.next());
  FLYBALL_ASSIGN(block.software, unescaped(software));
  if (!words.at_end()) return fail(ErrorCode::failed, "the line of a block is too long");
  return block;
}

double BlockBuilder::Sum::mean() const { return n == 0 ? kNone : sum / n; }

double BlockBuilder::Sum::sd() const {
  if (n < 2) return kNone;
  return std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)));
}

void BlockBuilder::Counter::add(WallTime at, std::uint64_t value) {
  if (n++ == 0) first_at = at;
  // One that falls was reset.
  if (n > 1 && value >= last) risen += value - last;
  last = value;
  last_at = at;
}

double BlockBuilder::Counter::rate() const {
  return n < 2 ? kNone : static_cast<double>(risen) / (last_at - first_at).value();
}

void BlockBuilder::Jitter::add(std::optional<Watts> reading) {
  if (!reading || !reading->finite()) {
    n = 0;
    return;
  }
  const double now = reading->value();
  if (n++ >= 2 && bends.size() < kBends) bends.push_back(std::abs(now - 2 * last + before) / 2);
  before = std::exchange(last, now);
}

double BlockBuilder::Jitter::middle() const { return bends.size() < kFewest ? kNone : median(bends); }

std::optional<SampleBlock> BlockBuilder::take(const FacilitySample& sample) {
  const auto length_ns = static_cast<std::int64_t>(std::llround(length_.value() * 1e9));
  const WallTime start(sample.at.nanoseconds() - sample.at.nanoseconds() % length_ns);
  std::optional<SampleBlock> done;
  if (start_ && *start_ != start) done = finish();
  start_ = start;
  add(sample);
  return done;
}

void BlockBuilder::add(const FacilitySample& s) {
  ++samples_;
  const auto put = [&](Quantity quantity, std::optional<double> value) {
    if (value && std::isfinite(*value)) sums_[static_cast<std::size_t>(quantity)].add(*value);
  };
  const bool battery = s.on_battery.value_or(false);
  put(Quantity::utility, value_of(s.utility));
  put(Quantity::generated, value_of(s.generated));
  put(Quantity::discharged, value_of(s.discharged));
  if (!battery) put(Quantity::ups_in, value_of(s.ups_in));
  put(Quantity::ups_out, value_of(s.ups_out));
  put(Quantity::voltage, value_of(s.voltage));
  if (s.voltage && s.voltage->finite()) {
    const bool first = sums_[static_cast<std::size_t>(Quantity::voltage)].n == 1;
    voltage_least_ = first ? s.voltage->value() : std::min(voltage_least_, s.voltage->value());
  }
  put(Quantity::it, value_of(s.it));
  put(Quantity::chillers, value_of(s.chillers));
  put(Quantity::pumps, value_of(s.pumps));
  put(Quantity::fans, value_of(s.fans));
  put(Quantity::chillers_on, value_of(s.chillers_on));
  put(Quantity::fan_speed, value_of(s.fan_speed_fraction));
  put(Quantity::pump_speed, value_of(s.pump_speed_fraction));
  put(Quantity::supply, value_of(s.supply));
  put(Quantity::set_point, value_of(s.set_point));
  put(Quantity::back, value_of(s.back));
  put(Quantity::dry_bulb, value_of(s.dry_bulb));
  put(Quantity::wet_bulb, value_of(s.wet_bulb));
  put(Quantity::gpu_power, value_of(s.gpu_power));
  put(Quantity::gpu_clock, value_of(s.gpu_clock));
  put(Quantity::gpu_temperature, value_of(s.gpu_temperature));
  put(Quantity::gpu_throttled, value_of(s.gpu_throttled_fraction));
  put(Quantity::on_battery, s.on_battery ? std::optional(battery ? 1.0 : 0.0) : std::nullopt);
  if (s.ecc_errors) ecc_.add(s.at, *s.ecc_errors);
  if (s.link_errors) link_.add(s.at, *s.link_errors);
  if (!s.software.empty()) software_ = s.software;
  if (s.chillers_on) {
    const bool first = sums_[static_cast<std::size_t>(Quantity::chillers_on)].n == 1;
    if (!first) switches_ += std::abs(*s.chillers_on - last_chillers_on_);
    last_chillers_on_ = *s.chillers_on;
  }
  add_racks(s);
  add_jitter(s);
  add_jobs(s);
}

void BlockBuilder::add_racks(const FacilitySample& s) {
  if (rack_power_.size() < s.racks.size()) {
    rack_power_.resize(s.racks.size());
    rack_inlet_.resize(s.racks.size());
  }
  bool all = !s.racks.empty();
  double sum = 0;
  for (std::size_t i = 0; i < s.racks.size(); ++i) {
    const RackSample& rack = s.racks[i];
    all = all && rack.power.has_value();
    if (rack.power) {
      rack_power_[i].add(rack.power->value());
      sum += rack.power->value();
    }
    if (rack.inlet) rack_inlet_[i].add(rack.inlet->value());
  }
  if (all) sums_[static_cast<std::size_t>(Quantity::racks)].add(sum);
  add_scatter(s, all ? sum : kNone);
}

void BlockBuilder::add_scatter(const FacilitySample& s, double racks) {
  const auto number = [](const std::optional<Watts>& power) { return power ? power->value() : kNone; };
  const auto put = [&](Quantity quantity, double value) {
    if (std::isfinite(value)) sums_[static_cast<std::size_t>(quantity)].add(value);
  };
  const double in = number(s.ups_in), out = number(s.ups_out), it = number(s.it), gpu = number(s.gpu_power);
  const bool battery = s.on_battery.value_or(false);
  const double used = (battery ? kNone : in) + number(s.chillers) + number(s.pumps) + number(s.fans);
  const double came =
      number(s.utility) + (s.generated ? s.generated->value() : 0) + (s.discharged ? s.discharged->value() : 0);
  put(Quantity::it_sd, it);
  put(Quantity::balance_sd, came - used);
  put(Quantity::ups_sd, battery ? kNone : in - out);
  put(Quantity::delivery_sd, out - it);
  put(Quantity::racks_sd, racks - it);
  if (it > 0 && gpu > 0) put(Quantity::gpu_sd, std::log(it / gpu));
  const std::array<double, kQuick> quick = {number(s.utility), it, battery ? kNone : in, out, gpu};
  for (std::size_t i = 0; i < kQuick; ++i) {
    if (samples_ > 1 && quick[i] == last_[i]) ++same_[i];
    last_[i] = quick[i];
  }
}

void BlockBuilder::add_jitter(const FacilitySample& sample) {
  chillers_.add(sample.chillers);
  pumps_.add(sample.pumps);
  fans_.add(sample.fans);
}

void BlockBuilder::add_jobs(const FacilitySample& sample) {
  double all = 0;
  std::map<std::string, bool> starting;
  for (const JobShare& job : sample.jobs) {
    all += job.gpus_fraction;
    starting[job.type] = starting[job.type] || job.phase == Phase::startup;
  }
  sums_[static_cast<std::size_t>(Quantity::jobs)].add(all);
  // One that was there already.
  for (const auto& [type, starts] : starting)
    if (const auto before = starting_.find(type); starts && before != starting_.end() && !before->second) ++starts_;
  starting_ = std::move(starting);
  for (const JobShare& job : sample.jobs) {
    Work& work = work_[PhaseKey{job.type, job.phase}];
    work.share += job.gpus_fraction;
    if (job.tokens_per_s) {
      ++work.token_samples;
      work.tokens += *job.tokens_per_s;
    }
    if (job.utilisation_fraction) work.utilisation.add(*job.utilisation_fraction);
    if (job.loss) work.loss.add(*job.loss);
  }
}

std::optional<SampleBlock> BlockBuilder::finish() {
  BlockBuilder done(length_);
  std::swap(done, *this);
  if (!done.start_ || done.samples_ < kFewest) return std::nullopt;
  SampleBlock block;
  block.start = *done.start_;
  block.length = length_;
  block.samples = done.samples_;
  const double samples = done.samples_;
  for (std::size_t i = 0; i < kQuantities; ++i)
    block.mean[i] = 2 * done.sums_[i].n >= done.samples_ ? done.sums_[i].mean() : kNone;
  const auto set = [&](Quantity quantity, double value) { block.mean[static_cast<std::size_t>(quantity)] = value; };
  set(Quantity::voltage_least, std::isnan(block.at(Quantity::voltage)) ? kNone : done.voltage_least_);
  set(Quantity::ecc_rate, done.ecc_.rate());
  set(Quantity::link_rate, done.link_.rate());
  for (const Quantity scatter : {Quantity::it_sd, Quantity::balance_sd, Quantity::ups_sd, Quantity::delivery_sd,
                                 Quantity::racks_sd, Quantity::gpu_sd}) {
    const Sum& sum = done.sums_[static_cast<std::size_t>(scatter)];
    set(scatter, 2 * sum.n >= done.samples_ ? sum.sd() : kNone);
  }
  set(Quantity::starts, done.starts_);
  set(Quantity::switches, std::isnan(block.at(Quantity::chillers_on)) ? kNone : done.switches_);
  set(Quantity::same, *std::max_element(done.same_.begin(), done.same_.end()) / (samples - 1));
  set(Quantity::chillers_jitter, done.chillers_.middle());
  set(Quantity::pumps_jitter, done.pumps_.middle());
  set(Quantity::fans_jitter, done.fans_.middle());
  for (std::size_t i = 0; i < done.rack_power_.size(); ++i) {
    block.rack_power_w.push_back(static_cast<float>(done.rack_power_[i].mean()));
    block.rack_inlet_c.push_back(static_cast<float>(done.rack_inlet_[i].mean()));
  }
  for (const auto& [key, work] : done.work_)
    block.work.push_back({key, work.share / samples, work.token_samples == 0 ? kNone : work.tokens / samples,
                          work.utilisation.mean(), work.utilisation.sd(), work.loss.mean()});
  block.software = done.software_;
  return block;
}

}  // namespace flyball::facility
