#include "facility/cause_watch.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace flyball::facility {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
/// One block says no more than so many long-run sd.
constexpr double kMostOfBlock = 5;
/// An event that hardly ever happens says more, and the time between two of them less.
constexpr double kMostOfEvent = 10, kRareAllowance = 0.03;
/// Blocks of an episode before it is told: what begins together is then seen together.
constexpr std::size_t kShortest = 6;
/// It is over when of the last blocks so little is left.
constexpr std::size_t kRecent = 18;
constexpr double kLeft = 0.3;
constexpr double kSure = 0.4;
/// Less is not worth telling.
constexpr double kLoud = 4;
/// What has not become so loud by then is dropped.
constexpr std::size_t kFaint = 144;

template <class Each>
void for_channels(Each each) {
  for (std::size_t i = 0; i < kChannels; ++i) each(static_cast<Channel>(i));
}

}  // namespace

CauseWatch::CauseWatch(const CauseOptions& options) : options_(options) {}

void CauseWatch::Sum::add(double z, double allowance, std::size_t at) {
  value = std::max(0.0, value + z - allowance);
  if (value == 0) since = at + 1;
}

void CauseWatch::take(const SampleBlock& block) {
  length_ = block.length;
  if (!learned_) {
    if (!reference_.empty() && block.start - reference_.front().start >= options_.reference_time) {
      learn();
    } else {
      reference_.push_back(block);
      return;
    }
  }
  judge(block);
  follow_episodes();
  begin_episodes();
}

void CauseWatch::learn() {
  frame_ = ChannelFrame::learn(reference_);
  std::array<std::vector<Lesson>, kChannels> lessons;
  // Twice: rates of jobs and courses of losses are known the second time.
  for (int pass = 0; pass < 2; ++pass) {
    for (std::vector<Lesson>& each : lessons) each.clear();
    for (const SampleBlock& block : reference_) {
      frame_.push(block);
      for_channels([&](Channel channel) {
        if (auto read = frame_.read(channel))
          lessons[static_cast<std::size_t>(channel)].push_back({block.start, std::move(read->x), read->y});
      });
    }
    if (pass == 0) frame_.begin_again();
  }
  frame_.settle();
  for_channels([&](Channel channel) {
    Watched& w = watched(channel);
    const std::vector<Lesson>& own = lessons[static_cast<std::size_t>(channel)];
    w.read = !own.empty();
    if (const auto rule = frame_.neighbours(channel)) {
      w.neighbours.emplace(*rule);
      w.neighbours->learn(own);
      return;
    }
    const std::vector<double> prior = frame_.prior_sd(channel);
    w.expected = Expected::learn(own, prior, frame_.least_sd(channel), ChannelFrame::rare(channel));
  });
  software_ = reference_.back().software;
  reference_.clear();
  reference_.shrink_to_fit();
  learned_ = true;
}

void CauseWatch::judge(const SampleBlock& block) {
  const std::size_t at = times_.size();
  times_.push_back(block.start);
  frame_.push(block);
  if (!block.software.empty() && block.software != software_) {
    if (!software_.empty()) software_changes_.push_back(at);
    software_ = block.software;
  }
  const double fan = block.at(Quantity::fan_speed);
  fan_cubes_.push_back(fan * fan * fan);
  warmest_.push_back(frame_.warmest_rack());
  for_channels([&](Channel channel) {
    Watched& w = watched(channel);
    const auto last = [](const auto& sums) { return sums.empty() ? 0 : sums.back(); };
    double sum = last(w.differences), surprises = last(w.surprises), sds = last(w.sds), doubts = last(w.doubts);
    std::uint32_t blocks = w.blocks.empty() ? 0 : w.blocks.back();
    double expectation = kNone;
    if (const auto read = frame_.read(channel)) {
      w.read = true;
      const Surprise surprise = w.take(block.start, read->x, read->y, suspected(channel));
      if (surprise.known) {
        sum += surprise.difference;
        surprises += surprise.z;
        sds += surprise.sd;
        doubts += surprise.doubt * surprise.doubt;
        ++blocks;
        expectation = surprise.expected;
        const double nothing = frame_.least_shift(channel) / surprise.sd;
        if (ChannelFrame::counted(channel)) {
          // Three within a day.
          w.up.add(std::clamp(surprise.z, -kMostOfEvent, kMostOfEvent), kRareAllowance + nothing, at);
        } else {
          const double z = std::clamp(surprise.z, -kMostOfBlock, kMostOfBlock);
          const double slow = (ChannelFrame::rare(channel) ? 1.0 / 3 : 1) * options_.slow_allowance + nothing;
          w.up.add(z, slow, at);
          w.down.add(-z, slow, at);
          w.fast_up.add(z, options_.fast_allowance + nothing, at);
          w.fast_down.add(-z, options_.fast_allowance + nothing, at);
        }
      }
    }
    w.differences.push_back(sum);
    w.surprises.push_back(surprises);
    w.sds.push_back(sds);
    w.doubts.push_back(doubts);
    w.blocks.push_back(blocks);
    w.expectations.push_back(expectation);
  });
}

ChannelShift CauseWatch::shift(Channel channel, std::size_t from, std::size_t to) const {
  const Watched& w = watched(channel);
  ChannelShift made;
  const auto before = [&](const auto& sums) { return from == 0 ? 0 : sums[from - 1]; };
  const double blocks = static_cast<double>(w.blocks[to] - before(w.blocks));
  if (blocks < 1 || !w.learned()) return made;
  made.known = true;
  made.shift = (w.differences[to] - before(w.differences)) / blocks;
  // The reference is not known for sure either, and no model is.
  const double doubt = (w.doubts[to] - before(w.doubts)) / blocks;
  constexpr double kModel = 0.05;
  const double factor = std::sqrt(1 / blocks + doubt + kModel * kModel);
  made.sd = (w.sds[to] - before(w.sds)) / blocks * factor;
  made.z = (w.surprises[to] - before(w.surprises)) / blocks / factor;
  const double nothing = frame_.least_shift(channel);
  made.z *= std::abs(made.shift) > nothing ? 1 - nothing / std::abs(made.shift) : 0;
  return made;
}

/// How much a drive changes as a part of what was expected of it, in the first two days; the block in which it began is
/// half of it and does not count. NaN: too little was.
double CauseWatch::follow(Channel channel, std::size_t from, std::size_t to) const {
  const Watched& w = watched(channel);
  RunningStats expected, measured;
  constexpr std::size_t kLook = 288;
  for (std::size_t i = from + 1; i < std::min(to, from + kLook); ++i) {
    if (!std::isfinite(w.expectations[i])) continue;
    expected.add(w.expectations[i]);
    measured.add(w.expectations[i] + w.differences[i] - (i == 0 ? 0 : w.differences[i - 1]));
  }
  constexpr double kLeastChange = 0.02, kConstant = 0.0015;
  if (expected.count() < 12) return kNone;
  if (expected.sd() < kLeastChange) return measured.sd() < kConstant ? 0 : 1;
  return measured.sd() / expected.sd();
}

/// What the fans draw too much, as a straight line in time times the cube of their speed: the part of its squares that
/// this leaves.
double CauseWatch::fans_apart(std::size_t from, std::size_t to) const {
  const Watched& w = watched(Channel::fans);
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0, yy = 0;
  std::size_t n = 0;
  for (std::size_t i = from; i <= to; ++i) {
    if (!std::isfinite(w.expectations[i]) || !std::isfinite(fan_cubes_[i])) continue;
    const double y = w.differences[i] - (i == 0 ? 0 : w.differences[i - 1]);
    const double a = fan_cubes_[i], b = a * static_cast<double>(i - from) / static_cast<double>(to - from + 1);
    aa += a * a, ab += a * b, bb += b * b, ay += a * y, by += b * y, yy += y * y;
    ++n;
  }
  const double determinant = aa * bb - ab * ab;
  if (n < 12 || yy <= 0 || determinant <= 1e-9 * aa * bb) return 0;
  const double p = (ay * bb - by * ab) / determinant, q = (by * aa - ay * ab) / determinant;
  return std::max(0.0, yy - p * ay - q * by) / yy;
}

/// A cumulative sum begins late where a shift is small: that of the label may be its onset too.
double CauseWatch::software_step(const Episode& episode, std::size_t to) const {
  constexpr std::size_t kBefore = 720, kAfter = 12;
  const Watched& w = watched(episode.trigger);
  const auto at = [](const auto& sums, std::size_t i) { return i == 0 ? 0 : sums[i - 1]; };
  const double blocks = w.blocks[to] - at(w.blocks, episode.from);
  double best = kNone;
  if (blocks < 1) return best;
  const double step = (w.surprises[to] - at(w.surprises, episode.from)) / blocks;
  for (const std::size_t change : software_changes_) {
    if (change + kBefore < episode.from || change > episode.from + kAfter) continue;
    // Of the blocks between the two: each is worth step (z - step / 2), to the one that has it in its time.
    const auto [first, last] = std::minmax(change, episode.from);
    const double n = at(w.blocks, last) - at(w.blocks, first), sum = at(w.surprises, last) - at(w.surprises, first);
    const double worth = step * sum - step * step * n / 2;
    const double gain = change < episode.from ? worth : -worth;
    if (!(gain <= best)) best = gain;
  }
  return best;
}

bool CauseWatch::explained(Channel channel, const Episode* but) const {
  for (const Episode& episode : episodes_) {
    if (&episode == but || episode.to || episode.candidates.empty()) continue;
    const Candidate& best = episode.candidates.front();
    for (const std::vector<Channel>* list : {&best.moved, &best.following, &episode.also})
      if (std::find(list->begin(), list->end(), channel) != list->end()) return true;
  }
  return false;
}

/// Told, and not over.
bool CauseWatch::suspected(Channel channel) const {
  return std::any_of(episodes_.begin(), episodes_.end(), [channel](const Episode& each) {
    if (each.to || each.number == 0) return false;
    if (each.trigger == channel || each.candidates.empty()) return each.trigger == channel;
    const std::vector<Channel>& moved = each.candidates.front().moved;
    return std::find(moved.begin(), moved.end(), channel) != moved.end();
  });
}

void CauseWatch::attribute_episode(Episode& episode) {
  const std::size_t to = episode.to.value_or(times_.size() - 1);
  AttributionInput input;
  input.trigger = episode.trigger;
  for_channels([&](Channel channel) {
    const auto i = static_cast<std::size_t>(channel);
    input.shifts[i] = shift(channel, episode.from, to);
    input.ignored[i] = channel != episode.trigger && !episode.to && explained(channel, &episode);
  });
  input.software_known = !software_.empty();
  input.software_step = software_step(episode, to);
  input.fans_follow = follow(Channel::fan_speed, episode.from, to);
  input.pumps_follow = follow(Channel::pump_speed, episode.from, to);
  input.fans_apart = fans_apart(episode.from, to);
  episode.shifts = input.shifts;
  episode.candidates = attribute(input);
  episode.rack = warmest_[to];
}

/// From where on the channel has been judged kRecent times.
std::size_t CauseWatch::recent_from(Channel channel) const {
  const std::vector<std::uint32_t>& blocks = watched(channel).blocks;
  const std::uint32_t last = blocks.back();
  if (last < kRecent) return 0;
  return static_cast<std::size_t>(std::upper_bound(blocks.begin(), blocks.end(), last - kRecent) - blocks.begin());
}

/// What it is known by has gone back.
bool CauseWatch::is_over(const Episode& episode) const {
  const std::size_t now = times_.size() - 1;
  std::vector<Channel> marks = {episode.trigger};
  if (!episode.candidates.empty()) marks = episode.candidates.front().moved;
  double left = 0, all = 0;
  for (const Channel channel : marks) {
    const std::size_t from = recent_from(channel);
    if (from < episode.from + kRecent) continue;
    const ChannelShift whole = shift(channel, episode.from, now), recent = shift(channel, from, now);
    if (!whole.known || !recent.known || whole.shift == 0) continue;
    const double weight = std::min(std::abs(whole.z), 20.0);
    all += weight;
    left += weight * std::max(0.0, recent.shift / whole.shift);
  }
  return all > 0 && left < kLeft * all;
}

void CauseWatch::forget(const Episode& episode) {
  const std::size_t now = times_.size();
  const auto clear = [&](Channel channel) {
    Watched& w = watched(channel);
    for (Sum* sum : {&w.up, &w.down, &w.fast_up, &w.fast_down}) *sum = {0, now, 0};
  };
  clear(episode.trigger);
  if (episode.candidates.empty()) return;
  for (const Channel channel : episode.candidates.front().moved) clear(channel);
  for (const Channel channel : episode.candidates.front().following) clear(channel);
}

void CauseWatch::follow_episodes() {
  const std::size_t now = times_.size() - 1;
  for (Episode& episode : episodes_) {
    if (episode.to) continue;
    attribute_episode(episode);
    const double loud = std::abs(episode.shifts[static_cast<std::size_t>(episode.trigger)].z);
    if (now >= episode.from + kShortest && loud >= kLoud && episode.number == 0) tell(episode);
    if (episode.part) continue;
    const bool faint = episode.number == 0 && now >= episode.from + kFaint;
    if (!faint && !is_over(episode)) continue;
    forget(episode);
    std::size_t last = recent_from(episode.trigger);
    if (!episode.candidates.empty())
      for (const Channel channel : episode.candidates.front().moved) last = std::max(last, recent_from(channel));
    episode.to = std::max(last, episode.from + 1) - 1;
    attribute_episode(episode);
  }
}

/// What the fresh one tells is the one before once more: the same cause shows in one more channel, or again before its
/// channel was judged well for long (chillers that stand still show nothing). What follows from one that lasts is a
/// consequence; what nothing explains by itself may be left of one that showed in it.
bool CauseWatch::goes_on(const Episode& before, const Episode& fresh) const {
  constexpr std::uint32_t kWell = 288;
  if (before.candidates.empty()) return false;
  const Candidate& was = before.candidates.front();
  const std::vector<std::uint32_t>& judged = watched(fresh.trigger).blocks;
  if (before.to && judged[fresh.from] > judged[*before.to] + kWell) return false;
  const auto has = [](const std::vector<Channel>& list, Channel channel) {
    return std::find(list.begin(), list.end(), channel) != list.end();
  };
  const bool shows = has(was.moved, fresh.trigger) || has(was.following, fresh.trigger);
  if (before.number > 0 && shows && (!before.to || fresh.candidates.empty())) return true;
  if (fresh.candidates.empty()) return false;
  const Candidate& now = fresh.candidates.front();
  if (was.cause != now.cause) return false;
  return !before.to || was.form == now.form ||
         std::any_of(now.moved.begin(), now.moved.end(), [&](Channel channel) { return has(was.moved, channel); });
}

bool CauseWatch::resumed(const Episode& fresh) {
  for (Episode& before : episodes_) {
    if (before.part || !goes_on(before, fresh)) continue;
    before.to.reset();
    before.also.push_back(fresh.trigger);
    attribute_episode(before);
    return true;
  }
  return false;
}

/// Gives it a number, unless by now it is seen to be part of one that has one.
void CauseWatch::tell(Episode& episode) {
  for (Episode& before : episodes_) {
    if (&before == &episode || before.number == 0 || !goes_on(before, episode)) continue;
    before.to.reset();
    before.also.push_back(episode.trigger);
    episode.part = true;
    episode.to = episode.from;
    return;
  }
  episode.number = ++told_;
}

void CauseWatch::begin_episodes() {
  while (true) {
    Channel loudest = Channel::count;
    double most = 1;
    std::size_t from = 0;
    for_channels([&](Channel channel) {
      if (ChannelFrame::only_context(channel) || explained(channel, nullptr)) return;
      for (const Episode& episode : episodes_)
        if (!episode.to && episode.trigger == channel) return;
      const Watched& w = watched(channel);
      const std::pair<const Sum*, double> sums[] = {{&w.up, options_.slow_threshold},
                                                    {&w.down, options_.slow_threshold},
                                                    {&w.fast_up, options_.fast_threshold},
                                                    {&w.fast_down, options_.fast_threshold}};
      for (const auto& [sum, threshold] : sums) {
        if (sum->value <= threshold * most) continue;
        most = sum->value / threshold;
        loudest = channel;
        from = sum->since;
      }
    });
    if (loudest == Channel::count) return;
    Episode episode;
    episode.trigger = loudest;
    episode.from = std::min(from, times_.size() - 1);
    attribute_episode(episode);
    if (!resumed(episode)) episodes_.push_back(episode);
  }
}

CauseFinding CauseWatch::finding_of(const Episode& episode) const {
  CauseFinding made;
  made.number = episode.number;
  made.since = times_[episode.from];
  if (episode.to) made.until = times_[*episode.to] + length_;
  std::vector<Channel> shown = {episode.trigger};
  const Candidate* best = episode.candidates.empty() ? nullptr : &episode.candidates.front();
  if (best == nullptr) {
    made.note = "no cause that is known moves this alone";
  } else if (best->probability < kSure) {
    made.note = "several causes explain it equally well";
    made.confidence_fraction = best->probability;
    made.form = best->form;
  } else {
    made.cause = best->cause;
    made.form = best->form;
    made.confidence_fraction = best->probability;
    shown = best->moved;
    for (const Channel each : best->following) shown.push_back(each);
  }
  if (best != nullptr)
    for (std::size_t i = made.cause == Cause::not_identifiable ? 0 : 1; i < episode.candidates.size(); ++i)
      made.alternatives.emplace_back(episode.candidates[i].cause, episode.candidates[i].probability);
  const double factor = student_t(options_.level, 100);
  std::sort(shown.begin(), shown.end());
  shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
  for (const Channel channel : shown) {
    const ChannelShift& s = episode.shifts[static_cast<std::size_t>(channel)];
    if (!s.known || (std::abs(s.z) < 3 && channel != episode.trigger)) continue;
    const bool by = best != nullptr && std::find(best->moved.begin(), best->moved.end(), channel) != best->moved.end();
    made.evidence.push_back({channel, {s.shift, s.shift - factor * s.sd, s.shift + factor * s.sd, options_.level}, by});
  }
  std::stable_sort(made.evidence.begin(), made.evidence.end(), [](const CauseEvidence& a, const CauseEvidence& b) {
    if (a.known_by != b.known_by) return a.known_by;
    return std::abs(a.shift.value) / a.shift.half_width() > std::abs(b.shift.value) / b.shift.half_width();
  });
  return made;
}

std::vector<CauseFinding> CauseWatch::findings() const {
  std::vector<CauseFinding> made;
  for (const Episode& episode : episodes_)
    if (episode.number > 0) made.push_back(finding_of(episode));
  std::sort(made.begin(), made.end(), [](const CauseFinding& a, const CauseFinding& b) { return a.number < b.number; });
  return made;
}

std::vector<Channel> CauseWatch::unmetered() const {
  std::vector<Channel> made;
  for_channels([&](Channel channel) {
    if (learned_ && !watched(channel).read && !frame_.metered(channel)) made.push_back(channel);
  });
  return made;
}

std::vector<Channel> CauseWatch::unlearned() const {
  std::vector<Channel> made;
  for_channels([&](Channel channel) {
    const Watched& w = watched(channel);
    if (learned_ && !w.learned() && (w.read || frame_.metered(channel))) made.push_back(channel);
  });
  return made;
}

std::optional<CauseWatch::Look> CauseWatch::look_at(Channel channel, std::size_t block) const {
  const Watched& w = watched(channel);
  if (!std::isfinite(w.expectations[block])) return std::nullopt;
  const auto own = [&](const std::vector<double>& sums) { return sums[block] - (block == 0 ? 0 : sums[block - 1]); };
  return Look{w.expectations[block] + own(w.differences), w.expectations[block], own(w.sds)};
}

std::optional<CauseWatch::Look> CauseWatch::look(Channel channel) const {
  return times_.empty() ? std::nullopt : look_at(channel, times_.size() - 1);
}

std::vector<CauseWatch::Point> CauseWatch::history(Channel channel) const {
  std::vector<Point> made;
  for (std::size_t i = 0; i < times_.size(); ++i)
    if (const auto look = look_at(channel, i)) made.push_back({times_[i], *look});
  return made;
}

}  // namespace flyball::facility
