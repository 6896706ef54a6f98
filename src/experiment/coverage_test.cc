// Measure R6 and R10: switchback on replayed node power and drift like the twin's. `./dev test` runs a short version
// with the tolerance of its number of runs; FLYBALL_CAMPAIGN=1 makes it 2,000 runs each and prints the figures.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/random.h"
#include "base/temp_dir.h"
#include "base/text.h"
#include "experiment/analysis.h"
#include "experiment/block_meter.h"

namespace flyball::experiment {
namespace {

/// Power of one node over its mean while it trains, every 2 s; in pieces that no evaluation cuts.
using Pieces = std::vector<std::vector<double>>;

std::vector<std::string> lines_of(const std::string& path) {
  std::string text;
  auto source = open_bytes(path);
  if (!source) return {};
  std::vector<char> buffer(1 << 16);
  for (;;) {
    const auto n = (*source)->read(buffer.data(), buffer.size());
    if (!n || *n == 0) break;
    text.append(buffer.data(), *n);
  }
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  return lines;
}

struct NodePower {
  std::vector<Pieces> ac, dc;  ///< node by node
};

const NodePower& node_power() {
  static const NodePower kept = [] {
    NodePower made;
    const std::string folder = shared_data_folder();
    if (folder.empty()) return made;
    std::map<std::string, std::vector<std::pair<double, double>>> evaluations;
    std::map<std::string, std::pair<double, double>> runs;
    for (const std::string& line : lines_of(folder + "/node_power/events.csv.gz")) {
      const auto cells = split(line, ',');
      if (cells.size() < 5) continue;
      const std::string run(cells[2]);
      const double at = parse_double(cells[3]).value_or(0) / 1000;
      if (cells[4] == "run_start") runs[run].first = at;
      if (cells[4] == "run_stop") runs[run].second = at;
      if (cells[4] == "eval_start") evaluations[run].push_back({at, at});
      if (cells[4] == "eval_stop" && !evaluations[run].empty()) evaluations[run].back().second = at;
    }
    // The AC meter lags: power is the training's again some seconds after an evaluation.
    const auto trains = [&](const std::string& run, double at) {
      if (at < runs[run].first + 60 || at > runs[run].second - 10) return false;
      for (const auto& [start, stop] : evaluations[run]) {
        if (at > start - 4 && at < stop + 14) return false;
      }
      return true;
    };
    std::map<std::string, std::pair<Pieces, Pieces>> nodes;
    std::map<std::string, double> last;
    for (const std::string& line : lines_of(folder + "/node_power/power_64x_gpt3.csv.gz")) {
      const auto cells = split(line, ',');
      if (cells.size() < 5 || cells[2] == "time_ms") continue;
      const auto ac = parse_double(cells[3]), dc = parse_double(cells[4]);
      const double at = parse_double(cells[2]).value_or(0) / 1000;
      const std::string run(cells[0]), key = run + std::string(cells[1]);
      if (!ac || !dc || !trains(run, at)) continue;
      auto& [ac_pieces, dc_pieces] = nodes[key];
      if (ac_pieces.empty() || at - last[key] > 3 || at < last[key]) ac_pieces.emplace_back(), dc_pieces.emplace_back();
      ac_pieces.back().push_back(*ac), dc_pieces.back().push_back(*dc);
      last[key] = at;
    }
    const auto normal = [](Pieces pieces) {
      double sum = 0, count = 0;
      for (const auto& piece : pieces) {
        for (const double v : piece) sum += v, count += 1;
      }
      for (auto& piece : pieces) {
        for (double& v : piece) v /= sum / count;
      }
      return pieces;
    };
    for (auto& [key, pieces] : nodes) {
      made.ac.push_back(normal(std::move(pieces.first)));
      made.dc.push_back(normal(std::move(pieces.second)));
    }
    return made;
  }();
  return kept;
}

struct World {
  Seconds length{7200};
  double share = 0.1;
  double step = 1.0;                           // s, at the original limits
  double saved = 0.1;                          // energy per token, by control
  double lost = 0.012;                         // throughput, by control
  double noise = 0.004;                        // of throughput, white per 10 s
  double drift = 0.005;                        // OU, 1 h
  const std::vector<Pieces>* power = nullptr;  // none = steady
  double look_period = 0;                      // s; an instant meter on a job whose power swings with its step
};

/// Power relative to its mean: pieces of one node in random order.
class Replay {
 public:
  Replay(const std::vector<Pieces>* nodes, Random random) : random_(random) {
    if (nodes != nullptr) pieces_ = &(*nodes)[random_.below(nodes->size())];
  }
  double next() {
    if (pieces_ == nullptr) return 1;
    if (piece_ == nullptr || at_ >= piece_->size()) {
      piece_ = &(*pieces_)[random_.below(pieces_->size())];
      at_ = 0;
    }
    return (*piece_)[at_++];
  }

 private:
  Random random_;
  const Pieces* pieces_ = nullptr;
  const std::vector<double>* piece_ = nullptr;
  std::size_t at_ = 0;
};

struct Run {
  Analysis analysis;
  std::vector<Block> blocks;
};

Run simulate(const World& world, std::uint64_t seed) {
  Random random(seed);
  Replay replay(world.power, random.fork(1));
  Schedule::Options options;
  options.share = world.share;
  options.step = Seconds(world.step);
  options.horizon = world.length;
  options.seed = random.bits();
  const auto schedule = Schedule::make(options);
  EXPECT_TRUE(schedule) << schedule.error().message();
  BlockMeter meter(*schedule);
  constexpr double kPoll = 0.5;
  double drift = world.drift * random.normal(), white = 0, energy = 0, work = 0, step_ended = 0;
  double before = replay.next(), after = replay.next(), shown = 1;
  const double phase = random.uniform(0, world.step);
  std::uint64_t steps = 0;
  for (int i = 0; i <= static_cast<int>(world.length.value() / kPoll); ++i) {
    const double t = i * kPoll;
    meter.add({Seconds(t), Joules(energy), Seconds(t), Seconds(step_ended), steps * 1000, true});
    const std::uint64_t block = schedule->index(Seconds(t));
    if (i == 0 || block != schedule->index(Seconds(t - kPoll))) meter.open(block, Seconds(t));
    if (i % 20 == 0) {
      const double decay = std::exp(-10.0 / 3600);
      drift = decay * drift + world.drift * std::sqrt(1 - decay * decay) * random.normal();
      white = world.noise * random.normal();
    }
    if (i > 0 && i % 4 == 0) before = after, after = replay.next();
    const bool control = schedule->arm(block) == Arm::control;
    const double rate = (1 + white + drift) * (control ? 1 - world.lost : 1) / world.step;
    const double level = control ? (1 - world.saved) * (1 - world.lost) : 1;
    // While a step lasts power goes from 0.8 to 1.2 of its mean; the meter shows the last instant it looked at.
    if (world.look_period > 0 && std::floor(t / world.look_period) != std::floor((t - kPoll) / world.look_period)) {
      shown = 1 + 0.2 * std::sin(2 * 3.141592653589793 * (work - std::floor(work)) + phase);
    }
    energy += 5000 * level * (before + (after - before) * (i % 4) / 4) * shown * kPoll;
    const double ends = std::floor(work + rate * kPoll);
    if (ends > std::floor(work)) {
      step_ended = t + (ends - work) / rate;
      steps = static_cast<std::uint64_t>(ends);
    }
    work += rate * kPoll;
  }
  Options how;
  how.seed = seed;
  how.step = Seconds(world.step);
  how.instant_period = Seconds(world.look_period);
  const auto blocks = meter.blocks();
  return {analyze(*schedule, blocks, how), blocks};
}

/// The other estimator, for comparison: in each group the log of energy per token at the original limits over that of
/// the blocks under control, the groups' mean with Student's interval.
Estimate by_groups(const std::vector<Block>& blocks, std::uint64_t group) {
  std::vector<double> logs;
  for (std::size_t first = 0; first + group <= blocks.size(); first += group) {
    Joules energy[2];
    double tokens[2] = {0, 0};
    for (std::size_t i = first; i < first + group; ++i) {
      energy[static_cast<int>(blocks[i].arm)] += blocks[i].energy;
      tokens[static_cast<int>(blocks[i].arm)] += blocks[i].tokens;
    }
    if (tokens[0] <= 0 || tokens[1] <= 0) continue;
    logs.push_back(std::log(energy[0] / energy[1] / (tokens[0] / tokens[1])));
  }
  const Estimate log = mean_with_interval(logs);
  return {-std::expm1(log.value), -std::expm1(log.high), -std::expm1(log.low), log.level};
}

struct Summary {
  int runs = 0, saved_covered = 0, lost_covered = 0, groups_covered = 0, saves = 0, too_noisy = 0;
  double saved_width = 0, lost_width = 0, groups_width = 0, claimed = 0;
  double share(int count) const { return static_cast<double>(count) / runs; }
};

Summary campaign(const World& world, int runs, std::uint64_t first_seed) {
  Summary sum;
  sum.runs = runs;
  const auto covers = [](const Estimate& e, double truth) { return e.low <= truth && truth <= e.high ? 1 : 0; };
  for (int i = 0; i < runs; ++i) {
    const Run run = simulate(world, first_seed + static_cast<std::uint64_t>(i));
    const Analysis& a = run.analysis;
    if (!a.energy_per_token || !a.throughput) continue;
    const Estimate groups = by_groups(run.blocks, static_cast<std::uint64_t>(std::lround(1 / world.share)));
    sum.saved_covered += covers(a.energy_per_token->less, world.saved);
    sum.lost_covered += covers(a.throughput->less, world.lost);
    sum.groups_covered += covers(groups, world.saved);
    sum.saved_width += a.energy_per_token->less.half_width() / runs * 100;
    sum.lost_width += a.throughput->less.half_width() / runs * 100;
    sum.groups_width += groups.half_width() / runs * 100;
    sum.saves += a.outcome == Outcome::saves, sum.too_noisy += a.outcome == Outcome::too_noisy;
    if (a.outcome == Outcome::saves || a.outcome == Outcome::costs) {
      sum.claimed += a.energy_per_token->less.value / runs * 100;
    }
  }
  return sum;
}

bool full() { return std::getenv("FLYBALL_CAMPAIGN") != nullptr; }
int runs() { return full() ? 2000 : 120; }

void bar(const char* id, const std::string& what, const std::string& figure) {
  if (full()) fmt::print("bar: {} {} = {}\n", id, what, figure);
}

/// Within four standard deviations of what the number of runs allows of `share`.
void expect_share(int count, double share) {
  const double sd = std::sqrt(share * (1 - share) / runs());
  EXPECT_NEAR(static_cast<double>(count) / runs(), share, 4 * sd);
}

class Switchback : public testing::Test {
 protected:
  void SetUp() override {
    if (node_power().ac.empty()) GTEST_SKIP() << "no node_power among the shared data";
  }
  static World ac(double noise, double step = 1) {
    World world;
    world.power = &node_power().ac;
    world.noise = noise;
    world.step = step;
    return world;
  }
};

TEST_F(Switchback, CoversTheTruthOnReplayedAcNoiseWithinTheBarsHalfWidths) {
  struct Case {
    double noise, lost_width;
    std::uint64_t seed;
  };
  for (const Case& c : {Case{0.004, 0.12, 1'000'000}, Case{0.01, 0.25, 2'000'000}}) {
    const Summary s = campaign(ac(c.noise), runs(), c.seed);
    expect_share(s.saved_covered, 0.95);
    expect_share(s.lost_covered, 0.95);
    EXPECT_LE(s.saved_width, 0.8);
    EXPECT_LE(s.lost_width, c.lost_width);
    EXPECT_EQ(s.saves, s.runs);
    const std::string what = fmt::format(
        "switchback, AC noise replayed, steps of 1 s, {:.1f} % noise, 2 h, 10 % off, {} runs", c.noise * 100, s.runs);
    bar("R6", what + ": coverage energy / throughput",
        fmt::format("{:.1f} / {:.1f} %", s.share(s.saved_covered) * 100, s.share(s.lost_covered) * 100));
    bar("R6", what + ": half-width energy / throughput",
        fmt::format("{:.2f} / {:.3f} points", s.saved_width, s.lost_width));
    bar("R6", what + ": the same by groups and Student's t, energy",
        fmt::format("coverage {:.1f} %, half-width {:.2f} points", s.share(s.groups_covered) * 100, s.groups_width));
  }
}

TEST_F(Switchback, LongStepsCoverAsWellAndAreALittleWider) {
  for (const double noise : {0.004, 0.01}) {
    const Summary s = campaign(ac(noise, 10.76), runs(), noise < 0.005 ? 3'000'000 : 4'000'000);
    expect_share(s.saved_covered, 0.95);
    expect_share(s.lost_covered, 0.95);
    EXPECT_LE(s.saved_width, 0.8);
    bar("R6", fmt::format("switchback, the same with steps of 10.76 s, {:.1f} % noise", noise * 100),
        fmt::format("coverage {:.1f} / {:.1f} %, half-width {:.2f} / {:.3f} points", s.share(s.saved_covered) * 100,
                    s.share(s.lost_covered) * 100, s.saved_width, s.lost_width));
  }
}

TEST_F(Switchback, NothingAgainstNothingClaimsNothing) {
  World world = ac(0.004);
  world.saved = world.lost = 0;
  const Summary s = campaign(world, runs(), 5'000'000);
  EXPECT_LE(s.share(s.saves), 0.05 + (full() ? 0 : 0.05));
  EXPECT_NEAR(s.claimed, 0, 0.1);
  expect_share(s.saved_covered, 0.95);
  bar("R6", fmt::format("A/A, {} runs: a saving declared", s.runs), fmt::format("{:.1f} %", s.share(s.saves) * 100));
  bar("R10", fmt::format("A/A, {} runs: mean of what is claimed", s.runs), fmt::format("{:.3f} points", s.claimed));
}

TEST_F(Switchback, AMeterThatLooksEveryTenSecondsIsTooNoisy) {
  for (const double period : {10.0, 10.5, 10.6, 10.62}) {
    World world;
    world.step = 10.62;
    world.look_period = period;
    const int few = runs() / 4;
    const Summary s = campaign(world, few, 6'000'000);
    EXPECT_EQ(s.too_noisy, few) << period;
    bar("R6",
        fmt::format("a meter that shows an instant every {} s, steps of 10.62 s, {} runs: too noisy", period, few),
        fmt::format("{:.1f} %", s.share(s.too_noisy) * 100));
  }
}

TEST_F(Switchback, TheDcMeterOfOneNodeWhichBeatsWithTheStepIsHonestAboutIt) {
  World world = ac(0.004, 10.76);
  world.power = &node_power().dc;
  const Summary s = campaign(world, runs(), 7'000'000);
  expect_share(s.saved_covered, 0.95);
  EXPECT_GT(s.too_noisy, 0);
  bar("R6", fmt::format("DC noise of one node replayed, {} runs", s.runs),
      fmt::format("coverage {:.1f} %, half-width {:.2f} points, too noisy {:.0f} %", s.share(s.saved_covered) * 100,
                  s.saved_width, s.share(s.too_noisy) * 100));
}

}  // namespace
}  // namespace flyball::experiment
