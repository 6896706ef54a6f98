// The fault campaign (measure G1): random faults against the engine in virtual time, with an oracle that knows the
// truth and checks it after every event. `./dev test` runs a short one; FLYBALL_CAMPAIGN=1 runs at least 10,000
// faults, and FLYBALL_SEED=n replays the world that a failure names.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/log.h"
#include "base/memory_filesystem.h"
#include "base/random.h"
#include "base/text.h"
#include "guard/engine.h"
#include "guard/scripted_driver.h"

namespace flyball::guard {
namespace {

using Setter = ScriptedBoard::Setter;

constexpr Milliwatts kSafeCap(500'000);
constexpr Milliwatts kFloor(250'000);
constexpr Milliwatts kRounding(1000);
const Seconds kStep(0.5);

struct Client {
  LeaseId lease = 0;
  LeaseKind kind = LeaseKind::saving;
  Authority authority = Authority::job;
  std::vector<DeviceId> devices;
  std::map<DeviceId, Milliwatts> wishes;
  bool hangs = false;
  MonoTime last_renewed;
};

/// What the oracle knows of one board.
struct Truth {
  bool blind = false;          ///< a stuck call of ours landed over a stranger's limit
  bool ours = false;           ///< the present limit was put there by the guard
  Milliwatts others{700'000};  ///< what anybody else put there last
  MonoTime trouble;            ///< last instant with a fault on the board, the driver, the disk or the guard
  MonoTime leased;             ///< last instant with a live lease that had a wish
  bool budgeted = false;       ///< a budget lease has written here since the last reload
  Milliwatts raised_to;        ///< highest wish of a live budget lease of fleet or site
  std::vector<MonoTime> writes;
};

class World {
 public:
  explicit World(std::uint64_t seed) : seed_(seed), random_(seed), driver_(3 + static_cast<int>(seed % 4)) {
    config_.everywhere.floor = kFloor;
    config_.everywhere.safe_cap = kSafeCap;
    config_.everywhere.clocks_unlocked = true;
    with_budget_ = seed % 2 == 0;
    const auto boards = static_cast<double>(driver_.ids().size());
    if (with_budget_) {
      NodeBudgetConfig budget;
      budget.meter = DeviceId::of("node-1/ac");
      caps_that_fit_ = Watts(boards * 600);
      budget.worst_non_gpu = Watts(1000);
      budget.overshoot_fraction = 0;
      budget.meter_accuracy_fraction = 0;
      budget.limit = (caps_that_fit_ + budget.worst_non_gpu) / budget.lowest_supply_efficiency + Watts(1e-6);
      config_.node_budget = budget;
    }
    for (const auto& id : driver_.ids()) {
      const Milliwatts start = limit(450, with_budget_ ? 600 : 700);
      driver_.board(id).requested = start;
      truth_[id].others = start;
    }
    driver_.before_write = [this](const DeviceId& id, Milliwatts value) { check_write(id, value); };
    start_guard();
  }

  /// Returns the number of faults injected; stops at the first broken promise.
  int run(int faults) {
    int injected = 0;
    while (injected < faults && broken_.empty()) {
      clients_act();
      if (random_.chance(0.4)) {
        inject();
        ++injected;
      }
      if (random_.chance(0.5)) mend();
      step();
    }
    settle();
    return injected;
  }
  const std::string& broken() const { return broken_; }
  /// The last of what the guard wrote down about itself.
  std::string story() const {
    std::string text;
    const auto& events = audit_.events();
    for (std::size_t i = events.size() > 600 ? events.size() - 600 : 0; i < events.size(); ++i) {
      text += fmt::format("{} {} {} {}: {}\n", format_rfc3339(events[i].at), events[i].kind, events[i].device.text(),
                          events[i].outcome, events[i].detail);
    }
    return text;
  }
  const EngineCounters& counters() const { return engine_->counters(); }

 private:
  Milliwatts limit(int low, int high) {
    return Milliwatts(low * 1000 +
                      static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low) * 1000)));
  }
  /// A value that nobody could take for one of ours: within the rounding of boards they cannot be told apart.
  Milliwatts strange_limit(const ScriptedBoard& board) {
    for (;;) {
      const Milliwatts value = limit(200, 700);
      const auto recent = board.writes.end() - std::min<std::ptrdiff_t>(20, std::ssize(board.writes));
      const bool like_ours = std::any_of(recent, board.writes.end(), [&](Milliwatts w) {
        return same_limit(w, value, Milliwatts(2000)) || same_limit(w + ScriptedBoard::kLie, value, Milliwatts(2000));
      });
      if (!like_ours) return value;
    }
  }
  DeviceId any_board() {
    const auto ids = driver_.ids();
    return ids[random_.below(ids.size())];
  }
  void broke(std::string what) {
    if (broken_.empty()) broken_ = fmt::format("at {:.1f} s: {}", clock_.now().seconds(), what);
  }

  void start_guard() {
    engine_.reset();
    auto started = Engine::start({driver_, clock_, disk_, audit_}, config_);
    if (!started) return broke("the guard does not start: " + started.error().message());
    engine_ = *std::move(started);
    clients_.clear();  // their leases ended with the guard
  }

  // ---- clients -------------------------------------------------------------------------------------------------

  void clients_act() {
    if (clients_.size() < 3 && random_.chance(0.5)) new_client();
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      if (client.hangs) continue;
      if (!engine_->renew(client.lease)) {
        clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i--));
        continue;
      }
      client.last_renewed = clock_.now();
      if (random_.chance(0.3)) write_something(client);
      if (random_.chance(0.01)) {
        const Client leaving = client;
        clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i--));
        (void)engine_->release(leaving.lease);
      }
    }
  }

  void new_client() {
    Client client;
    const bool mixed = seed_ % 4 == 1;  // a quarter of the worlds knows saving leases only
    client.kind = with_budget_ || (mixed && random_.chance(0.4)) ? LeaseKind::budget : LeaseKind::saving;
    client.authority = static_cast<Authority>(random_.below(3));
    for (const auto& id : driver_.ids()) {
      if (random_.chance(0.7)) client.devices.push_back(id);
    }
    LeaseRequest request{client.kind, client.authority, client.devices, Seconds(10), "campaign", false};
    const auto lease = engine_->acquire(request);
    if (!lease) return;
    client.lease = *lease;
    client.last_renewed = clock_.now();
    clients_.push_back(client);
  }

  void write_something(Client& client) {
    std::vector<WriteRequest> writes;
    for (const auto& id : client.devices) {
      if (!random_.chance(0.6)) continue;
      const Milliwatts wish = random_.chance(0.05) ? Milliwatts(1'000) : limit(200, 760);
      client.wishes[id] = wish;
      writes.push_back({id, wish, {}});
      if (client.kind == LeaseKind::budget) truth_[id].budgeted = true;
    }
    if (writes.empty()) return;
    note_leases();
    (void)engine_->write(client.lease, writes);
  }

  bool is_live(const Client& client) const { return clock_.now() - client.last_renewed <= Seconds(10); }

  /// Which boards somebody may be holding at this instant, and how far up.
  void note_leases() {
    for (auto& [id, truth] : truth_) truth.raised_to = Milliwatts(0);
    for (const Client& client : clients_) {
      if (!is_live(client)) continue;
      for (const auto& [id, wish] : client.wishes) {
        Truth& truth = truth_[id];
        truth.leased = clock_.now();
        const bool may_raise = client.kind == LeaseKind::budget && client.authority != Authority::job;
        if (may_raise) truth.raised_to = std::max(truth.raised_to, std::max(wish, kFloor));
      }
    }
  }

  // ---- faults --------------------------------------------------------------------------------------------------

  void inject() {
    const DeviceId id = any_board();
    const std::uint64_t kind = random_.below(20);
    (void)audit_.record(AuditEvent{clock_.wall(), "fault", id, 0, std::to_string(kind), {}});
    if (kind < 11) {
      break_board(kind, driver_.board(id));
    } else {
      disturb(kind, id);
    }
  }

  /// One board's driver misbehaves until it is mended.
  void break_board(std::uint64_t kind, ScriptedBoard& board) {
    switch (kind) {
      case 0:
        board.state = random_.chance(0.5) ? DeviceState::lost : DeviceState::hung;
        break;
      case 1:
        board.unreadable = true;
        break;
      case 2:
        board.setter = Setter::refuses;
        break;
      case 3:
        board.setter = Setter::ignores;
        break;
      case 4:
        board.setter = Setter::writes_other;
        break;
      case 5:
        board.setter = Setter::applies_late;
        break;
      case 6:
        board.setter = Setter::times_out_and_applies;
        break;
      case 7:
        board.enforces_above = true;
        break;
      case 8:
        board.garbled = random_.chance(0.5) ? strange_limit(board) : Milliwatts(0);
        break;
      case 9:
        board.garbage_range = true;
        break;
      default:
        board.outside = limit(200, 700);
        break;
    }
  }

  /// Something happens around the boards: to clients, the guard, the driver, the machine.
  void disturb(std::uint64_t kind, const DeviceId& id) {
    ScriptedBoard& board = driver_.board(id);
    Truth& truth = truth_[id];
    switch (kind) {
      case 11:  // a client is killed
        if (!clients_.empty()) {
          const Client dead = clients_.back();
          clients_.pop_back();
          engine_->client_gone(dead.lease, "killed");
        }
        break;
      case 12:  // a client hangs
        if (!clients_.empty()) clients_[random_.below(clients_.size())].hangs = true;
        break;
      case 13:
      case 14:  // another program writes
        board.requested = strange_limit(board);
        truth.others = board.requested;
        truth.ours = truth.blind = false;
        disturbed_ = clock_.now();
        break;
      case 15:
        driver_.reload();
        everything_is_default();
        break;
      case 16:
        driver_.not_ready = true;
        break;
      case 17:  // the guard is killed
        start_guard();
        break;
      case 18:  // power is cut; what was not synced is lost, or half of it
        disk_.lose_power(random_.below(400));
        driver_.reboot();
        for (auto& [other, t] : truth_) driver_.board(other).setter = Setter::obeys;
        everything_is_default();
        start_guard();
        break;
      default:
        if (random_.chance(0.3)) {
          clock_.step_wall(Seconds(random_.uniform(-1e6, 1e6)));
        } else if (random_.chance(0.5)) {
          disk_.set_space_left(random_.below(600));
          disk_full_ = true;
        } else {
          disk_.set_sync_fails(true);
          disk_full_ = true;
        }
    }
  }

  void everything_is_default() {
    for (auto& [id, truth] : truth_) {
      truth.others = driver_.board(id).factory_default;
      truth.ours = truth.blind = false;
    }
    disturbed_ = clock_.now();
  }

  void mend() {
    ScriptedBoard& board = driver_.board(any_board());
    (void)audit_.record(AuditEvent{clock_.wall(), "mended", {}, 0, {}, driver_.not_ready ? "driver not ready" : ""});
    board.state = DeviceState::ok;
    board.unreadable = false;
    board.setter = Setter::obeys;
    board.enforces_above = false;
    board.garbage_range = false;
    board.outside.reset();
    if (random_.chance(0.3)) driver_.not_ready = false;
    if (random_.chance(0.3)) mend_disk();
    const DeviceId id = any_board();
    if (driver_.board(id).late) {
      land(id);
    }
  }

  /// A call of ours that was given up takes effect. What a stranger wrote meanwhile is gone, and nobody who looks every
  /// two seconds can know that it was there.
  void land(const DeviceId& id) {
    if (!driver_.board(id).late) return;
    driver_.land_late(id);
    truth_[id].blind = truth_[id].blind || !truth_[id].ours;
    truth_[id].ours = true;
  }

  void mend_disk() {
    disk_.set_space_left(static_cast<std::size_t>(-1));
    disk_.set_sync_fails(false);
    disk_full_ = false;
  }

  bool troubled(const DeviceId& id) {
    const ScriptedBoard& board = driver_.board(id);
    return driver_.not_ready || disk_full_ || board.state != DeviceState::ok || board.unreadable || board.late ||
           board.setter != Setter::obeys || board.enforces_above || board.garbage_range || board.garbled;
  }

  void step() {
    note_leases();
    for (auto& [id, truth] : truth_) {
      if (troubled(id)) truth.trouble = clock_.now();
    }
    clock_.advance(kStep);
    note_leases();
    engine_->tick();
    check_state();
  }

  /// All faults end; the promises must hold for everyone a while later.
  void settle() {
    for (const auto& id : driver_.ids()) {
      ScriptedBoard& board = driver_.board(id);
      board.state = DeviceState::ok;
      board.unreadable = board.enforces_above = board.garbage_range = false;
      board.setter = Setter::obeys;
      board.outside.reset();
      land(id);
    }
    driver_.not_ready = false;
    mend_disk();
    for (Client& client : clients_) client.hangs = true;
    for (int i = 0; i < 400 && broken_.empty(); ++i) step();
    if (broken_.empty() && engine_->restoring()) broke("something is still to be given back");
  }

  // ---- promises ------------------------------------------------------------------------------------------------

  /// Looks at every call of a setter, before it acts.
  void check_write(const DeviceId& id, Milliwatts value) {
    Truth& truth = truth_[id];
    ScriptedBoard& board = driver_.board(id);
    const Milliwatts before = board.requested;
    const bool is_restore = value == truth.others || std::abs((value - truth.others).value()) <= kRounding.value();
    // What was found before a stuck call hid a stranger's limit is all that the guard can know.
    if (!is_restore && !truth.blind && (value < std::max(kFloor, board.minimum) || value > board.maximum)) {
      broke(fmt::format("{} is written {} mW, outside the allowed range", id.text(), value.value()));
    }
    if (!truth.ours && value > before && truth.raised_to < value) {
      broke(fmt::format("{} is raised from {} mW, which someone else wrote, to {} mW", id.text(), before.value(),
                        value.value()));
    }
    if (value > before + kRounding && !is_restore && truth.raised_to < value && !truth.ours) {
      broke(fmt::format("{} is raised to {} mW, and nobody asked", id.text(), value.value()));
    }
    if (with_budget_ && value > before && clock_.now() - disturbed_ > Seconds(4)) {
      Milliwatts sum = value - before;
      for (const auto& other : driver_.ids()) sum = sum + driver_.board(other).requested;
      if (sum.watts() > caps_that_fit_) {
        broke(fmt::format("{} is raised to {} mW: {} mW of caps where {} fit", id.text(), value.value(), sum.value(),
                          caps_that_fit_.value()));
      }
    }
    truth.writes.push_back(clock_.now());
    std::erase_if(truth.writes, [&](MonoTime at) { return clock_.now() - at > Seconds(60); });
    if (truth.writes.size() > 130)
      broke(fmt::format("{} is written {} times a minute", id.text(), truth.writes.size()));
    const bool lands = board.setter == Setter::obeys || board.setter == Setter::writes_other ||
                       board.setter == Setter::times_out_and_applies;
    if (lands && value >= board.minimum && value <= board.maximum) truth.ours = true;
  }

  void check_state() {
    for (auto& [id, truth] : truth_) {
      // In time: lease + 5 s; a failed attempt is tried again within 60 s, and found on the next look.
      const MonoTime now = clock_.now();
      const bool due = now - truth.leased > Seconds(5) && now - truth.trouble > Seconds(68);
      const bool quick = now - truth.leased > Seconds(5) && now - truth.trouble > Seconds(40) &&
                         now - truth.leased < now - truth.trouble - Seconds(30);
      if ((!due && !quick) || !truth.ours || truth.blind) continue;
      const Milliwatts shown = driver_.board(id).requested;
      if (truth.budgeted || with_budget_) {
        const bool as_found = !with_budget_ && std::abs((shown - truth.others).value()) <= kRounding.value();
        if (!as_found && shown > std::max(kFloor, std::min(truth.others, kSafeCap)) + kRounding) {
          broke(fmt::format("{} rests at {} mW, above safe cap and what others set ({} mW)", id.text(), shown.value(),
                            truth.others.value()));
        }
        continue;
      }
      if (std::abs((shown - truth.others).value()) > kRounding.value()) {
        broke(fmt::format("{} is left at {} mW; {} mW was found", id.text(), shown.value(), truth.others.value()));
      }
    }
    check_budget();
  }

  /// What others do to the sum ends within the verify period, as far as it is in our hands.
  void check_budget() {
    if (!with_budget_) return;
    Milliwatts sum;
    bool trouble = clock_.now() - disturbed_ < Seconds(4);
    for (const auto& id : driver_.ids()) {
      sum = sum + driver_.board(id).requested;
      trouble = trouble || clock_.now() - truth_[id].trouble < Seconds(68);
    }
    if (trouble || sum.watts() <= caps_that_fit_) return;
    for (const auto& [id, truth] : truth_) {
      if (truth.ours && driver_.board(id).requested > kSafeCap + kRounding) {
        broke(fmt::format("{} mW of caps where {} fit, and our {} is above its safe cap", sum.value(),
                          caps_that_fit_.value(), id.text()));
      }
    }
  }

  std::uint64_t seed_;
  Random random_;
  ScriptedDriver driver_;
  VirtualClock clock_;
  MemoryFilesystem disk_;
  MemoryAudit audit_;
  EngineConfig config_;
  std::unique_ptr<Engine> engine_;
  std::vector<Client> clients_;
  std::map<DeviceId, Truth> truth_;
  bool with_budget_ = false;
  bool disk_full_ = false;
  Watts caps_that_fit_;
  MonoTime disturbed_;
  std::string broken_;
};

std::string replay(std::uint64_t seed) {
  return fmt::format("replay: FLYBALL_SEED={} guard_test --gtest_filter=Campaign.RandomFaults", seed);
}

TEST(Campaign, RandomFaults) {
  log::set_level(log::Level::off);
  const char* one = std::getenv("FLYBALL_SEED");
  const bool full = std::getenv("FLYBALL_CAMPAIGN") != nullptr;
  const std::uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 1;
  const int asked = full ? std::atoi(std::getenv("FLYBALL_CAMPAIGN")) : 0;  // more than 1 = that many faults
  const int wanted = one != nullptr ? 1 : (full ? std::max(asked, 20'000) : 2'000);
  int faults = 0;
  int broken = 0;
  std::uint64_t seed = first;
  EngineCounters all;
  for (; faults < wanted; ++seed) {
    World world(seed);
    faults += world.run(60);
    EXPECT_EQ(world.broken(), "") << replay(seed) << "\n" << (one != nullptr ? world.story() : "");
    if (!world.broken().empty() && ++broken == 10) break;
    all.writes += world.counters().writes;
    all.restores += world.counters().restores;
  }
  fmt::print("{} worlds; their last guards made {} writes and {} restores\n", seed - first, all.writes, all.restores);
  fmt::print("bar: G1 random faults in virtual time, broken promises = {} faults, {} broken\n", faults, broken);
}

}  // namespace
}  // namespace flyball::guard
