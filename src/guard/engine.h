#pragma once
// The only place that decides whether a limit is written, and what is written when nobody asks any more. Pure: no
// thread, no wait; driver, clock, files and audit are injected, so the same code runs in the guard and in virtual time.
// The rules are in doc/safety.md.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/filesystem.h"
#include "core/driver.h"
#include "guard/audit.h"
#include "guard/authority.h"
#include "guard/config.h"
#include "guard/hold.h"
#include "guard/journal.h"
#include "guard/limit_range.h"

namespace flyball::guard {

struct EngineParts {
  Driver& driver;
  Clock& clock;
  Filesystem& files;
  AuditSink& audit;
  /// Called at the start with the boards of the journal, before the driver is asked for anything.
  std::function<void(const std::vector<DeviceId>&)> expect = {};
};

enum class Drift : std::uint8_t {
  none,
  foreign_writer,   ///< another program wrote a limit
  factory_default,  ///< the driver was loaded again, or forgot
  above_request,    ///< enforced above what was asked: the setter lied
};
std::string_view to_string(Drift drift);

/// One board as the guard sees it, for status pages and for the loop (freeze learning while `external_limit` is set).
struct BoardStatus {
  DeviceId device;
  DeviceState state = DeviceState::ok;
  bool held = false;  ///< we have written here and owe a restore
  LeaseKind kind = LeaseKind::saving;
  bool parked = false;  ///< a budget lease ended; the owner of the budget has not come back
  std::vector<LeaseId> leases;
  Sample<Milliwatts> found;
  std::optional<Milliwatts> accepted;
  Sample<Milliwatts> requested;
  Sample<Milliwatts> enforced;
  std::optional<Milliwatts> external_limit;  ///< someone outside (BMC, brake) holds the board below our request
  Drift drift = Drift::none;
  int drift_rewrites = 0;
  bool yielded = false;  ///< another writer would not stop; we did
  int failures = 0;      ///< writes or restores in a row that did not work
  bool restoring = false;
  std::string reason;  ///< the last failure, one line
};

/// Since start.
struct EngineCounters {
  std::uint64_t writes = 0;
  std::uint64_t writes_failed = 0;
  std::uint64_t restores = 0;
  std::uint64_t restores_failed = 0;  ///< attempts
  std::uint64_t left_to_other = 0;
  std::uint64_t closed_after_reload = 0;
  std::uint64_t leases_expired = 0;
  std::uint64_t drift_seen = 0;
  std::uint64_t drift_rewrites = 0;
  std::uint64_t audit_lost = 0;
};

class Engine final : public LimitAuthority {
 public:
  /// Reads the journal and gives back, by rule, what an earlier guard left. Boards that cannot be reached are retried
  /// by `tick`, which also lists those that the journal does not name.
  static Result<std::unique_ptr<Engine>> start(EngineParts parts, EngineConfig config);

  Result<LeaseId> acquire(const LeaseRequest& request) override;
  Result<> renew(LeaseId lease) override;
  Result<std::vector<WriteOutcome>> write(LeaseId lease, const std::vector<WriteRequest>& writes) override;
  Result<std::vector<RestoreOutcome>> release(LeaseId lease) override;
  Result<std::vector<RestoreOutcome>> restore_all(const std::string& reason) override;

  /// Whoever stands before the engine has turned a lease away; the audit log says so.
  void note_refused(const LeaseRequest& request, const std::string& why);
  /// The client is gone (closed socket, exited process): at once. A sticky lease stays.
  void client_gone(LeaseId lease, const std::string& why);
  /// The owner of a budget ends it: back to what was found, also upward. Boards whose budget belongs to a higher
  /// authority, or that are leased, are refused in their outcome.
  Result<std::vector<RestoreOutcome>> lift(Authority who, const std::vector<DeviceId>& devices);

  /// Expiry, verification, drift, steps, retries. Call at least every half second.
  void tick();
  /// The guard itself was busy for this long (a driver's call that hung): leases could not be renewed meanwhile.
  void forgive(Seconds busy);
  /// A reading of the node budget's meter and of all GPUs behind it, taken together.
  void observe_meter(const Sample<Watts>& meter, const Sample<Watts>& gpu_sum);

  std::vector<BoardStatus> boards() const;
  const EngineCounters& counters() const { return counters_; }
  const JournalContent& recovered() const { return journal_->found(); }
  std::size_t leases() const { return leases_.size(); }
  bool has_lease(LeaseId lease) const { return leases_.contains(lease); }
  /// Restores that have not worked yet, a journal or audit log that cannot be written, a budget that does not hold.
  std::vector<std::string> alarms() const;
  /// Something of ours is still to be given back.
  bool restoring() const;
  bool over_budget() const { return over_budget_; }

 private:
  struct Wish {
    std::optional<Milliwatts> limit;
    std::optional<ClockRange> clocks;
  };
  struct Slot {
    LeaseId lease = 0;
    LeaseKind kind = LeaseKind::saving;
    Wish wish;
    /// A budget lease that has said where this board belongs.
    bool binds_budget() const { return kind == LeaseKind::budget && wish.limit; }
  };
  struct Lease {
    LeaseRequest request;
    LeaseKind kind = LeaseKind::saving;
    MonoTime deadline;
    Seconds forgiven;  ///< since it was last renewed
  };
  struct Retry {
    int count = 0;
    MonoTime next;
    std::string reason;
  };
  struct Board {
    DeviceId id;
    DeviceState state = DeviceState::ok;
    bool shared = false;
    std::array<std::optional<Slot>, 3> slots;  ///< by authority
    std::optional<Hold> hold;
    PowerLimits limits;       ///< as last read well
    Milliwatts shown_before;  ///< by the read before `limits`
    std::optional<MonoTime> read_at;
    bool unseen = true;                 ///< the last look failed
    std::optional<Milliwatts> maximum;  ///< last known, for boards that fall silent
    std::optional<MonoTime> written_at;
    std::optional<Milliwatts> external_limit;
    std::optional<ClockRange> locked;
    int above_lock = 0;                   ///< looks in a row at which it ran above that
    std::optional<MonoTime> watch_until;  ///< given back, but a stuck call may still land
    Drift drift = Drift::none;
    int rewrites = 0;
    MonoTime next_rewrite;
    MonoTime last_drift;
    std::optional<Milliwatts> stranger;  ///< the limit that someone else wrote and that we have recorded
    bool yielded = false;
    Retry retry;
    int tries = 0;               ///< failed writes of the present wish
    bool pending = false;        ///< has steps to go
    bool snapshot_kept = false;  ///< what `hold` would give back is in the journal

    bool wished() const;
    bool under_budget() const;
    /// Something of ours may be in force on the board.
    bool has_written() const { return hold && (hold->accepted || !hold->intents.empty()); }
  };
  /// What one attempt to move a board did.
  struct Sent {
    WriteState state = WriteState::failed;
    std::string reason;
  };

  Engine(EngineParts parts, EngineConfig config);

  // engine_lease.cc
  Result<> admit_lease(const LeaseRequest& request);
  Result<> refresh_devices();
  std::vector<DeviceId> detach(LeaseId lease, std::string_view why);
  std::vector<RestoreOutcome> end_leases(const std::vector<LeaseId>& leases, std::string_view why);
  void expire(MonoTime now);
  Lease* find_lease(LeaseId lease);

  // engine_write.cc
  std::optional<Milliwatts> goal(const Board& board) const;
  Result<> store_wish(Board& board, LeaseId lease, const Lease& of, const WriteRequest& write);
  WriteOutcome drive(Board& board);
  Sent advance(Board& board, Milliwatts target);
  std::optional<std::string> must_wait(const Board& board, Milliwatts present, Milliwatts target) const;
  std::optional<std::string> must_not_raise(const Board& board, Milliwatts next, bool& refused) const;
  bool may_rewrite(Board& board);
  Result<> prepare_hold(Board& board, Milliwatts value, bool may_go_unjournaled);
  void drop_unwritten(Board& board, bool first);
  Sent send(Board& board, Milliwatts value, bool may_go_unjournaled);
  Sent judge(Board& board, Milliwatts value, Milliwatts before, const Result<>& called);
  Sent apply_clocks(Board& board);
  bool escapes_lock(Board& board);
  void failed(Board& board, const std::string& reason);
  void worked(Board& board);

  // engine_verify.cc
  Result<> look(Board& board);
  Result<> reconcile(Board& board);
  void found_other(Board& board);
  void reloaded(Board& board, const DriverEpoch& epoch);
  void see_ceiling(Board& board);
  Snapshot snapshot_of(const Board& board, std::string last_writer) const;
  Result<> save(Board& board, Durability durability);
  void verify(MonoTime now);
  void hold_budget();

  // engine_restore.cc
  void recover();
  RestoreOutcome give_back(Board& board, bool upward);
  void give_back_power(Board& board, bool upward, RestoreOutcome& outcome);
  void park(Board& board);
  bool owner_stays(const Board& board) const;
  bool give_back_clocks(Board& board, std::string& reason);
  void forget(Board& board);
  void finish_restore(Board& board, RestoreOutcome& outcome, bool upward);

  Milliwatts present(const Board& board) const;
  /// Lost, hung or not read for too long: it may draw its maximum.
  bool is_silent(const Board& board) const;
  Milliwatts safe_cap(const Board& board) const;
  Milliwatts highest_possible(const Board& board) const;
  std::vector<BoardDraw> draws(const Board* changed, Milliwatts cap) const;
  void audit(std::string kind, const DeviceId& device, LeaseId lease, std::string outcome, std::string detail);

  EngineParts parts_;
  EngineConfig config_;
  std::unique_ptr<Journal> journal_;
  std::optional<NodeBudget> budget_;
  std::optional<DriverEpoch> epoch_;  ///< as of the last look; absent when the driver did not tell
  std::map<DeviceId, Board> boards_;
  std::map<LeaseId, Lease> leases_;
  LeaseId next_lease_ = 1;
  MonoTime next_verify_;
  MonoTime next_mend_;
  std::string list_error_;  ///< last said
  bool listed_ = false;     ///< by this guard, at least once
  bool audit_broken_ = false;
  bool over_budget_ = false;
  EngineCounters counters_;
};

}  // namespace flyball::guard
