#include "evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/memory_filesystem.h"
#include "guard/engine.h"
#include "loop/loop.h"
#include "policy/policy.h"
#include "series/accounting.h"

namespace flyball::evaluate {
namespace {

/// The step of published sweeps; the static baseline of measures.md.
constexpr Watts kStaticStep{25};
/// 5 min, as measures.md counts a saving that stays.
constexpr Seconds kTargetWindow{300};
constexpr double kTargetShare = 0.9;
/// Curves on which even hindsight saves less say nothing about how fast a policy learns.
constexpr double kWorthLearning = 0.005;
/// Enough for percentiles of a bootstrap.
constexpr int kResamples = 2000;
constexpr double kClearlyWorse = 0.002;
constexpr Seconds kYear{8760 * 3600.0};

/// What a run without control makes of the same disturbances.
struct Base {
  Joules energy;
  double tokens = 0;
  double gpus = 0;
};

/// What a run with these true values is worth.
void add_worth(Score& score, const Base& base, const Options& options) {
  const auto exactly = [](double x) { return Estimate{x, x, x, 1}; };
  Account run;
  run.duration = options.duration;
  run.energy = base.energy * ((1 - score.saved_fraction) * (1 - score.loss_fraction));
  run.tokens = base.tokens * (1 - score.loss_fraction);
  run.scope = Scope::board;
  const Worth worth =
      series::worth(exactly(score.saved_fraction), exactly(score.loss_fraction), run, options.rates, base.gpus);
  score.power_reduction_fraction = worth.power_reduction_fraction.value;
  score.node_saved_fraction = worth.node_saved_fraction.value;
  score.fixed_feed_gain_fraction = worth.fixed_feed_gain_fraction.value;
  if (!worth.net_money) return;
  score.net_money_per_gpu_year = worth.net_money->value / base.gpus * (kYear / options.duration);
}

Result<Base> run_base(const Subject& subject, const Options& options, std::uint64_t seed) {
  VirtualClock clock;
  FLYBALL_ASSIGN(const auto plant, subject.build(seed, clock));
  clock.advance(options.duration);
  FLYBALL_ASSIGN(const auto devices, plant->driver().devices());
  return Base{plant->energy(), plant->tokens(), static_cast<double>(devices.size())};
}

/// One machine under one policy: plant, guard and loop as live.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> create(const Subject& subject, const Options& options,
                                               const std::string& policy, std::uint64_t seed) {
    std::unique_ptr<Bench> bench(new Bench);
    bench->poll_ = subject.poll;
    FLYBALL_ASSIGN(bench->plant_, subject.build(seed, bench->clock_));
    FLYBALL_ASSIGN(bench->policy_, policy::make(policy, options.objective));
    guard::EngineConfig config;
    config.longest_lease = options.interval * 6.0;
    config.everywhere.clocks_unlocked = bench->plant_->clocks_unlocked();
    Driver& driver = bench->plant_->driver();
    FLYBALL_ASSIGN(bench->engine_, guard::Engine::start({driver, bench->clock_, bench->disk_, bench->audit_}, config));
    loop::Options how;
    how.poll = subject.poll;
    how.decision = options.interval;
    how.run_length = options.duration;
    how.lease_time = config.longest_lease;
    how.seed = seed;
    how.clocks_unlocked = config.everywhere.clocks_unlocked;
    bench->loop_ = std::make_unique<loop::Loop>(driver, bench->clock_, *bench->engine_, bench->plant_->job(),
                                                *bench->policy_, how);
    FLYBALL_TRY(bench->loop_->start());
    return bench;
  }
  /// Up to the next decision. True if the limits as found were chosen in order to measure.
  bool step() {
    for (;;) {
      clock_.advance(poll_);
      engine_->tick();
      if (const auto record = loop_->tick()) return record->proposal.baseline;
    }
  }
  Plant& plant() { return *plant_; }
  const loop::Loop& loop() const { return *loop_; }

 private:
  Bench() = default;

  VirtualClock clock_;
  Seconds poll_;
  std::unique_ptr<Plant> plant_;
  MemoryFilesystem disk_;
  guard::MemoryAudit audit_;
  std::unique_ptr<policy::Policy> policy_;
  std::unique_ptr<guard::Engine> engine_;
  std::unique_ptr<loop::Loop> loop_;
};

/// What the setting in force is truly worth; nothing where all is as found. `known` is false where limits were lowered
/// under a lock, of which neither curve says anything.
std::optional<double> true_saving(const Subject& subject, Milliwatts limit, std::optional<Hertz> lock, bool& known) {
  const curve::Curve& curve = subject.truth;
  const bool lowered = limit < Milliwatts::from(curve.highest());
  if (!lock || subject.clocks.empty()) {
    if (lock) known = false;
    if (!lowered) return std::nullopt;
    return 1 - curve.energy(limit.watts()) / curve.energy(curve.highest());
  }
  if (lowered) known = false;
  const Hertz step = subject.clocks.size() > 1 ? subject.clocks[0] - subject.clocks[1] : Hertz(1e6);
  const double rung =
      std::clamp((subject.clocks.front() - *lock) / step, -1.0, static_cast<double>(subject.clocks.size() - 1));
  if (rung <= -1) return std::nullopt;
  const auto saving = [&](double at) {
    if (at < 0) return 0.0;
    const policy::Level& level = subject.by_clock[static_cast<std::size_t>(at)];
    return 1 - level.power / level.rate;
  };
  const double below = std::floor(rung);
  return saving(below) + (rung - below) * (saving(std::ceil(rung)) - saving(below));
}

/// Follows the saving that the settings in force are truly worth, over a sliding window.
class TargetWatch {
 public:
  TargetWatch(double target, const Options& options)
      : target_(target), length_(static_cast<std::size_t>(std::lround(kTargetWindow / options.interval))) {}

  /// Of one decision; nothing where all is as found.
  void add(const std::optional<double>& saving) {
    ++decisions_;
    if (!saving) return;
    window_.push_back(*saving);
    sum_ += window_.back();
    if (window_.size() > length_) {
      sum_ -= window_.front();
      window_.pop_front();
    }
    if (window_.size() < length_) return;
    if (sum_ / static_cast<double>(length_) >= target_) {
      // The window that is good begins with its first decision.
      if (!since_) since_ = static_cast<double>(decisions_ - length_);
    } else {
      since_.reset();
    }
  }
  std::optional<double> result() const { return since_; }

 private:
  double target_;
  std::size_t length_, decisions_ = 0;
  std::deque<double> window_;
  double sum_ = 0;
  std::optional<double> since_;
};

Result<Score> run_policy(const Subject& subject, const CurveInfo& info, const Base& base, const Options& options,
                         const std::string& policy, std::uint64_t seed) {
  FLYBALL_ASSIGN(const auto bench, Bench::create(subject, options, policy, seed));
  TargetWatch watch(info.fixed.saved_fraction * kTargetShare, options);
  const auto intervals = std::llround(options.duration / options.interval);
  std::int64_t uncontrolled = 0, looks = 0;
  const Milliwatts found = bench->plant().limit();
  Score score;
  for (std::int64_t i = 0; i < intervals; ++i) {
    const Milliwatts limit = bench->plant().limit();
    const auto lock = bench->plant().lock();
    if (limit >= found && !lock) ++uncontrolled;
    watch.add(true_saving(subject, limit, lock, score.target_watched));
    if (bench->step()) ++looks;
  }
  score.seed = seed;
  const double tokens = bench->plant().tokens() / base.tokens;
  score.loss_fraction = 1 - tokens;
  score.saved_fraction = 1 - bench->plant().energy() / base.energy / tokens;
  score.uncontrolled_fraction = static_cast<double>(uncontrolled) / static_cast<double>(intervals);
  score.looks_fraction = static_cast<double>(looks) / static_cast<double>(intervals);
  if (score.target_watched) score.decisions_to_target = watch.result();
  score.writes = bench->loop().writes();
  return score;
}

/// Computed, not run: hindsight needs no loop.
Score ideal_score(const Ideal& ideal, std::uint64_t seed) {
  Score score;
  score.seed = seed;
  score.saved_fraction = ideal.saved_fraction;
  score.loss_fraction = ideal.loss_fraction;
  score.decisions_to_target = 0;
  return score;
}

bool is_hindsight(const std::string& policy) { return policy == "static" || policy == "oracle"; }

/// All policies on one subject with one seed.
Result<std::vector<Score>> run_all(const Subject& subject, const CurveInfo& info, std::size_t index,
                                   const Options& options, std::uint64_t seed) {
  FLYBALL_ASSIGN(const Base base, run_base(subject, options, seed));
  std::vector<Score> scores;
  for (const std::string& policy : options.policies) {
    Score score;
    if (is_hindsight(policy)) {
      score = ideal_score(policy == "static" ? info.fixed : info.mix, seed);
    } else {
      FLYBALL_ASSIGN(score, run_policy(subject, info, base, options, policy, seed));
    }
    score.curve = index;
    add_worth(score, base, options);
    scores.push_back(score);
  }
  return scores;
}

/// Saved by the mix with the limits found that loses no more than the bound.
double feasible_saved(const Score& score, const Objective& objective) {
  if (!objective.max_loss_fraction || score.loss_fraction <= *objective.max_loss_fraction) return score.saved_fraction;
  return score.saved_fraction * *objective.max_loss_fraction / score.loss_fraction;
}

/// Σ saved / Σ ideal over curves drawn by network.
Estimate pooled_ratio(const Evaluation& evaluation, const PolicyScores& scores) {
  std::map<std::string, std::pair<double, double>> networks;
  double saved = 0, ideal = 0;
  for (const Score& score : scores.scores) {
    const CurveInfo& info = evaluation.curves[score.curve];
    networks[info.network].first += score.saved_fraction;
    networks[info.network].second += info.mix.saved_fraction;
    saved += score.saved_fraction;
    ideal += info.mix.saved_fraction;
  }
  if (ideal <= 0) return {};
  std::vector<std::pair<double, double>> parts;
  parts.reserve(networks.size());
  for (const auto& [network, sums] : networks) parts.push_back(sums);
  Random random(evaluation.options.first_seed);
  std::vector<double> ratios;
  for (int i = 0; i < kResamples; ++i) {
    double top = 0, bottom = 0;
    for (std::size_t j = 0; j < parts.size(); ++j) {
      const auto& part = parts[random.below(parts.size())];
      top += part.first;
      bottom += part.second;
    }
    if (bottom > 0) ratios.push_back(top / bottom);
  }
  return {saved / ideal, quantile(ratios, 0.025), quantile(ratios, 0.975), 0.95};
}

Result<> check(const Options& options) {
  if (options.policies.empty()) return fail(ErrorCode::input, "there is no policy to evaluate", "--policies");
  for (const std::string& policy : options.policies) {
    if (is_hindsight(policy)) continue;
    if (auto made = policy::make(policy, options.objective); !made) {
      Error error = std::move(made.error());
      if (error.remedy.starts_with("known are")) error.remedy += ", and in hindsight static, oracle";
      error.where = "--policies";
      return fail(std::move(error));
    }
  }
  if (options.duration < options.interval * 60.0) {
    return fail(ErrorCode::input, "a run is shorter than 60 decisions", "--duration", "give more than 10 min");
  }
  return {};
}

}  // namespace

Result<Evaluation> evaluate_curves(const std::vector<curve::MeasuredCurve>& curves, const Options& options) {
  std::vector<Subject> subjects;
  for (const curve::MeasuredCurve& measured : curves) {
    FLYBALL_ASSIGN(const curve::Curve truth, curve::Curve::monotone(measured.points));
    const Noise noise = options.noise;
    subjects.push_back({measured.name(), measured.network, truth, "", options.interval,
                        [truth, noise](std::uint64_t seed, Clock& clock) -> Result<std::unique_ptr<Plant>> {
                          return std::make_unique<CurvePlant>(truth, noise, seed, clock);
                        }});
  }
  return evaluate(subjects, options);
}

Result<Evaluation> evaluate(const std::vector<Subject>& subjects, const Options& options) {
  FLYBALL_TRY(check(options));
  Evaluation evaluation;
  evaluation.options = options;
  for (const Subject& subject : subjects) {
    evaluation.curves.push_back({subject.name, subject.network, subject.hash,
                                 best_mix(subject.truth, options.objective, Watts(1), subject.by_clock),
                                 best_static(subject.truth, options.objective, kStaticStep)});
  }
  const auto seeds = static_cast<std::size_t>(options.seeds);
  const std::size_t tasks = subjects.size() * seeds;
  std::vector<std::optional<Result<std::vector<Score>>>> done(tasks);
  std::atomic<std::size_t> next{0}, finished{0};
  std::atomic<bool> stop{false};
  std::mutex telling;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks && !stop; i = next++) {
      const std::size_t index = i / seeds;
      done[i] = run_all(subjects[index], evaluation.curves[index], index, options, options.first_seed + i % seeds);
      const std::size_t n = ++finished;
      const std::lock_guard lock(telling);
      if (options.stop && options.stop()) stop = true;
      if (options.progress) options.progress(static_cast<double>(n) / static_cast<double>(tasks));
    }
  };
  std::vector<std::thread> others;
  const unsigned threads = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (stop) return fail(ErrorCode::failed, "the evaluation was ended before it was done");
  for (const std::string& policy : options.policies) evaluation.policies.push_back({policy, is_hindsight(policy), {}});
  for (auto& scores : done) {
    FLYBALL_ASSIGN(const std::vector<Score> all, std::move(*scores));
    for (std::size_t p = 0; p < all.size(); ++p) evaluation.policies[p].scores.push_back(all[p]);
  }
  return evaluation;
}

std::vector<Summary> summarize(const Evaluation& evaluation) {
  std::vector<Summary> summaries;
  for (const PolicyScores& scores : evaluation.policies) {
    Summary summary;
    summary.policy = scores.policy;
    summary.hindsight = scores.hindsight;
    RunningStats saved, loss, uncontrolled, looks, writes, reduction, node, feed, money;
    std::size_t within = 0;
    std::vector<double> decisions;
    for (const Score& score : scores.scores) {
      const CurveInfo& info = evaluation.curves[score.curve];
      saved.add(score.saved_fraction);
      loss.add(score.loss_fraction);
      uncontrolled.add(score.uncontrolled_fraction);
      looks.add(score.looks_fraction);
      writes.add(static_cast<double>(score.writes));
      reduction.add(score.power_reduction_fraction);
      node.add(score.node_saved_fraction);
      feed.add(score.fixed_feed_gain_fraction);
      if (score.net_money_per_gpu_year) money.add(*score.net_money_per_gpu_year);
      summary.worst_loss_fraction = std::max(summary.worst_loss_fraction, score.loss_fraction);
      if (info.mix.binds) {
        ++summary.binding_runs;
        if (score.loss_fraction <= *evaluation.options.objective.max_loss_fraction + 1e-9) ++within;
      }
      if (info.fixed.saved_fraction >= kWorthLearning && score.target_watched) {
        decisions.push_back(score.decisions_to_target.value_or(std::numeric_limits<double>::infinity()));
      }
    }
    summary.saved_fraction = saved.mean();
    summary.loss_fraction = loss.mean();
    summary.uncontrolled_fraction = uncontrolled.mean();
    summary.looks_fraction = looks.mean();
    summary.writes = writes.mean();
    summary.power_reduction_fraction = reduction.mean();
    summary.node_saved_fraction = node.mean();
    summary.fixed_feed_gain_fraction = feed.mean();
    if (money.count() > 0) summary.net_money_per_gpu_year = money.mean();
    if (summary.binding_runs > 0) {
      summary.binding_within_fraction = static_cast<double>(within) / static_cast<double>(summary.binding_runs);
    }
    std::sort(decisions.begin(), decisions.end());
    const auto rank = [&](double p) -> std::optional<double> {
      if (decisions.empty()) return std::nullopt;
      return decisions[static_cast<std::size_t>(p * static_cast<double>(decisions.size() - 1))];
    };
    summary.median_decisions = rank(0.5);
    summary.p90_decisions = rank(0.9);
    summary.pooled_ratio = pooled_ratio(evaluation, scores);
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

std::vector<Comparison> compare(const Evaluation& evaluation, const std::string& policy) {
  std::vector<Comparison> all;
  const auto ours = std::find_if(evaluation.policies.begin(), evaluation.policies.end(),
                                 [&](const PolicyScores& p) { return p.policy == policy; });
  if (ours == evaluation.policies.end()) return all;
  for (const PolicyScores& theirs : evaluation.policies) {
    if (&theirs == &*ours) continue;
    Comparison c{policy, theirs.policy, theirs.hindsight, 0, 0, 0};
    double mine = 0, other = 0;
    for (std::size_t i = 0; i < theirs.scores.size(); ++i) {
      const double a = feasible_saved(ours->scores[i], evaluation.options.objective);
      const double b = feasible_saved(theirs.scores[i], evaluation.options.objective);
      mine += a;
      other += b;
      if (a > b) c.ahead_fraction += 1;
      if (a < b - kClearlyWorse) c.clearly_worse_fraction += 1;
    }
    const auto runs = static_cast<double>(theirs.scores.size());
    c.ahead_fraction /= runs;
    c.clearly_worse_fraction /= runs;
    c.pooled_ratio = other > 0 ? mine / other : 0;
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace flyball::evaluate
