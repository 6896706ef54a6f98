#include "ledger/ledger.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "ledger/schema.h"
#include "ledger/sqlite.h"

namespace flyball::ledger {
namespace {

std::int64_t as_int(std::uint64_t value) { return static_cast<std::int64_t>(value); }

template <class T>
std::optional<double> optional_value(const Sample<T>& sample) {
  if (!sample) return std::nullopt;
  if constexpr (std::is_same_v<T, double>) {
    return *sample;
  } else {
    return (*sample).value();
  }
}
std::optional<std::int64_t> optional_mw(const Sample<Milliwatts>& sample) {
  return sample ? std::optional((*sample).value()) : std::nullopt;
}

template <class T>
Sample<T> sample(const Statement& row, int column) {
  if (row.is_null(column)) return Sample<T>::absent(Status::missing);
  if constexpr (std::is_same_v<T, Milliwatts>) {
    return Milliwatts(row.integer(column));
  } else {
    return T(row.number(column));
  }
}

void bind_estimate(Statement& statement, int first, const std::optional<Estimate>& estimate) {
  if (!estimate) {
    for (int i = 0; i < 4; ++i) statement.bind_null(first + i);
    return;
  }
  statement.bind(first, estimate->value).bind(first + 1, estimate->low);
  statement.bind(first + 2, estimate->high).bind(first + 3, estimate->level);
}

std::optional<Estimate> estimate(const Statement& row, int first) {
  if (row.is_null(first)) return std::nullopt;
  return Estimate{row.number(first), row.number(first + 1), row.number(first + 2), row.number(first + 3)};
}

Result<RunState> parse_state(const std::string& text) {
  for (const RunState state : {RunState::running, RunState::done, RunState::interrupted, RunState::failed}) {
    if (to_string(state) == text) return state;
  }
  return fail(ErrorCode::failed, "'" + text + "' is not the state of a run", "ledger");
}

Severity parse_severity(const std::string& text) {
  if (text == to_string(Severity::alarm)) return Severity::alarm;
  return text == to_string(Severity::warning) ? Severity::warning : Severity::info;
}

constexpr const char* kSelectRun =
    "SELECT id, state, plant, policy, seed, version, arguments, started_ns, finished_ns, saved_fraction, saved_low, "
    "saved_high, saved_level, loss_fraction, loss_low, loss_high, loss_level, saved_basis, writes, writes_refused, "
    "restored, (SELECT count(*) FROM decisions WHERE run = runs.id), recorded_ns FROM runs ";

}  // namespace

std::string_view to_string(RunState state) {
  static constexpr std::array<std::string_view, 4> names = {"running", "done", "interrupted", "failed"};
  return names[static_cast<std::size_t>(state)];
}

struct Ledger::State {
  Database database;
  std::optional<Statement> decision, gpu, write, finding;

  Result<> migrate();
  Result<> prepare();
  Result<> add_finding(RunId run, const Finding& finding);
  Result<> add_gpu(RunId run, const DecisionEntry& entry, const GpuObservation& gpu);
  Result<> add_account(RunId run, const char* kind, const Account& account);
  Result<> add_switchback(RunId run, const SwitchbackResult& switchback);
  Result<Account> account(RunId run, const char* kind, bool& there);
  Result<std::optional<SwitchbackResult>> switchback(RunId run);
  Result<RunRow> row(const Statement& statement);
};

Ledger::Ledger(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;
Ledger::~Ledger() = default;
const std::string& Ledger::path() const { return state_->database.path(); }

namespace {

Result<> check_identity(Database& database, bool may_be_empty) {
  FLYBALL_ASSIGN(const auto id, database.query_int("PRAGMA application_id"));
  FLYBALL_ASSIGN(const auto tables, database.query_int("SELECT count(*) FROM sqlite_schema"));
  if (id == 0 && tables == 0 && may_be_empty) return {};
  if (id != kApplicationId) {
    return fail(ErrorCode::input, "the file is a database, but not a ledger of flyball", database.path(),
                "choose another folder with --state-dir");
  }
  FLYBALL_ASSIGN(const auto version, database.query_int("PRAGMA user_version"));
  if (version > Ledger::kSchemaVersion) {
    return fail(ErrorCode::unsupported,
                "the ledger has schema " + std::to_string(version) + ", this program knows up to " +
                    std::to_string(Ledger::kSchemaVersion),
                database.path(), "use the newer program that made it");
  }
  return {};
}

}  // namespace

Result<> Ledger::State::migrate() {
  FLYBALL_TRY(check_identity(database, true));
  // WAL: readers never wait for the writer. NORMAL: a power cut may cost the last decisions, never the file.
  FLYBALL_TRY(database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"));
  FLYBALL_ASSIGN(auto transaction, Transaction::begin(database));
  FLYBALL_ASSIGN(const auto version, database.query_int("PRAGMA user_version"));
  if (version == kSchemaVersion) return transaction.commit();
  for (auto from = version; from < kSchemaVersion; ++from) FLYBALL_TRY(database.execute(kMigrations[from]));
  const std::string stamp = "PRAGMA application_id = " + std::to_string(kApplicationId) +
                            "; PRAGMA user_version = " + std::to_string(kSchemaVersion);
  FLYBALL_TRY(database.execute(stamp.c_str()));
  return transaction.commit();
}

Result<> Ledger::State::prepare() {
  FLYBALL_ASSIGN(decision, database.prepare("INSERT INTO decisions VALUES (?,?,?,?,?,?,?,?,?,?)"));
  FLYBALL_ASSIGN(gpu, database.prepare("INSERT INTO decision_gpus VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"));
  FLYBALL_ASSIGN(write, database.prepare("INSERT INTO writes VALUES (NULL,?,?,?,?,?,?,?,?)"));
  FLYBALL_ASSIGN(finding, database.prepare("INSERT INTO findings VALUES (NULL,?,?,?,?,?,?,?,?)"));
  return {};
}

Result<Ledger> Ledger::open(const std::string& path) {
  FLYBALL_ASSIGN(Database database, Database::open(path, Database::Mode::read_write));
  auto state = std::make_unique<State>();
  state->database = std::move(database);
  FLYBALL_TRY(state->migrate());
  FLYBALL_TRY(state->prepare());
  return Ledger(std::move(state));
}

Result<Ledger> Ledger::open_read_only(const std::string& path) {
  FLYBALL_ASSIGN(Database database, Database::open(path, Database::Mode::read_only));
  auto state = std::make_unique<State>();
  state->database = std::move(database);
  FLYBALL_TRY(check_identity(state->database, false));
  return Ledger(std::move(state));
}

Result<RunId> Ledger::begin_run(const RunStart& start) {
  FLYBALL_ASSIGN(Statement insert,
                 state_->database.prepare("INSERT INTO runs (state, plant, policy, seed, version, arguments, "
                                          "started_ns, recorded_ns) VALUES (?,?,?,?,?,?,?,?)"));
  insert.bind(1, to_string(RunState::running)).bind(2, start.plant).bind(3, start.policy);
  insert.bind(4, std::to_string(start.seed)).bind(5, start.version).bind(6, start.arguments);
  FLYBALL_TRY(insert.bind(7, start.started.nanoseconds()).bind(8, start.recorded.nanoseconds()).run());
  return state_->database.last_row_id();
}

Result<> Ledger::State::add_finding(RunId run, const Finding& f) {
  finding->bind(1, run).bind(2, f.since.nanoseconds()).bind(3, to_string(f.severity)).bind(4, f.code);
  finding->bind(5, f.device.text()).bind(6, f.what).bind(7, f.remedy);
  return finding->bind(8, f.confidence_fraction).run();
}

Result<> Ledger::State::add_gpu(RunId run, const DecisionEntry& entry, const GpuObservation& o) {
  std::optional<std::int64_t> asked;
  for (const GpuProposal& wish : entry.proposal.gpus) {
    if (wish.device == o.device && wish.power_limit) asked = wish.power_limit->value();
  }
  gpu->bind(1, run).bind(2, as_int(entry.number)).bind(3, o.device.text()).bind(4, optional_value(o.power));
  gpu->bind(5, optional_value(o.energy)).bind(6, optional_value(o.utilisation_fraction));
  gpu->bind(7, optional_value(o.temperature)).bind(8, optional_value(o.sm_clock));
  gpu->bind(9, optional_mw(o.limit_enforced)).bind(10, asked);
  return gpu->bind(11, static_cast<std::int64_t>(o.throttle.bits)).bind(12, o.coverage_fraction).run();
}

Result<> Ledger::add_decision(RunId run, const DecisionEntry& entry) {
  FLYBALL_ASSIGN(auto transaction, Transaction::begin(state_->database));
  const Observation& o = entry.observation;
  Statement& d = *state_->decision;
  d.bind(1, run).bind(2, as_int(entry.number)).bind(3, entry.wall.nanoseconds()).bind(4, o.interval.value());
  d.bind(5, to_string(o.phase)).bind(6, as_int(o.tokens)).bind(7, optional_value(o.tokens_per_second));
  d.bind(8, optional_value(o.step_time));
  d.bind(9, entry.frozen.empty() ? std::nullopt : std::optional<std::string_view>(entry.frozen));
  FLYBALL_TRY(d.bind(10, entry.proposal.reason).run());
  for (const GpuObservation& gpu : o.gpus) FLYBALL_TRY(state_->add_gpu(run, entry, gpu));
  for (const Write& w : entry.writes) {
    Statement& insert = *state_->write;
    insert.bind(1, run).bind(2, as_int(entry.number)).bind(3, w.device.text()).bind(4, w.asked.value());
    insert.bind(5, w.accepted.value()).bind(6, optional_mw(w.enforced)).bind(7, w.state);
    FLYBALL_TRY(insert.bind(8, w.reason).run());
  }
  for (const Finding& finding : entry.findings) FLYBALL_TRY(state_->add_finding(run, finding));
  return transaction.commit();
}

Result<> Ledger::State::add_account(RunId run, const char* kind, const Account& account) {
  FLYBALL_ASSIGN(Statement insert, database.prepare("INSERT OR REPLACE INTO energy VALUES (?,?,?,?,?,?,?,?,?,?)"));
  insert.bind(1, run).bind(2, std::string_view(kind)).bind(3, to_string(account.scope)).bind(4, account.method);
  insert.bind(5, account.energy.value()).bind(6, account.duration.value()).bind(7, account.tokens);
  return insert.bind(8, account.coverage_fraction).bind(9, account.cost).bind(10, account.carbon_g).run();
}

Result<> Ledger::end_run(RunId run, RunState run_state, WallTime finished, const RunResult& result) {
  FLYBALL_ASSIGN(auto transaction, Transaction::begin(state_->database));
  FLYBALL_ASSIGN(Statement update,
                 state_->database.prepare(
                     "UPDATE runs SET state=?, finished_ns=?, saved_fraction=?, saved_low=?, saved_high=?, "
                     "saved_level=?, loss_fraction=?, loss_low=?, loss_high=?, loss_level=?, saved_basis=?, writes=?, "
                     "writes_refused=?, restored=? WHERE id=?"));
  update.bind(1, to_string(run_state)).bind(2, finished.nanoseconds());
  bind_estimate(update, 3, result.saved_fraction);
  bind_estimate(update, 7, result.loss_fraction);
  update.bind(11, result.saved_basis).bind(12, as_int(result.writes)).bind(13, as_int(result.writes_refused));
  FLYBALL_TRY(update.bind(14, std::int64_t{result.restored}).bind(15, run).run());
  FLYBALL_TRY(state_->add_account(run, "run", result.account));
  if (result.counterfactual) FLYBALL_TRY(state_->add_account(run, "counterfactual", *result.counterfactual));
  if (result.switchback) FLYBALL_TRY(state_->add_switchback(run, *result.switchback));
  for (const Finding& finding : result.findings) FLYBALL_TRY(state_->add_finding(run, finding));
  return transaction.commit();
}

Result<> Ledger::State::add_switchback(RunId run, const SwitchbackResult& s) {
  FLYBALL_ASSIGN(Statement insert, database.prepare("INSERT OR REPLACE INTO switchbacks VALUES "
                                                    "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  insert.bind(1, run).bind(2, s.verdict).bind(3, s.reason);
  bind_estimate(insert, 4, s.saved_fraction);
  bind_estimate(insert, 8, s.loss_fraction);
  bind_estimate(insert, 12, s.saved_run_fraction);
  bind_estimate(insert, 16, s.loss_run_fraction);
  insert.bind(20, s.half_width_fraction).bind(21, s.p_value).bind(22, s.block.value());
  insert.bind(23, as_int(s.blocks_control)).bind(24, as_int(s.blocks_original)).bind(25, s.control_fraction);
  return insert.bind(26, s.discarded_fraction).bind(27, s.needed.value()).run();
}

Result<std::optional<SwitchbackResult>> Ledger::State::switchback(RunId run) {
  // A reader may find a file that no newer program has written to yet.
  FLYBALL_ASSIGN(const auto version, database.query_int("PRAGMA user_version"));
  if (version < 2) return std::nullopt;
  FLYBALL_ASSIGN(Statement select, database.prepare("SELECT * FROM switchbacks WHERE run = ?"));
  FLYBALL_ASSIGN(const bool there, select.bind(1, run).step());
  if (!there) return std::nullopt;
  SwitchbackResult s;
  s.verdict = select.text(1);
  s.reason = select.text(2);
  s.saved_fraction = estimate(select, 3);
  s.loss_fraction = estimate(select, 7);
  s.saved_run_fraction = estimate(select, 11);
  s.loss_run_fraction = estimate(select, 15);
  s.half_width_fraction = select.number(19);
  s.p_value = select.number(20);
  s.block = Seconds(select.number(21));
  s.blocks_control = static_cast<std::uint64_t>(select.integer(22));
  s.blocks_original = static_cast<std::uint64_t>(select.integer(23));
  s.control_fraction = select.number(24);
  s.discarded_fraction = select.number(25);
  s.needed = Seconds(select.number(26));
  return s;
}

Result<Account> Ledger::State::account(RunId run, const char* kind, bool& there) {
  FLYBALL_ASSIGN(Statement select, database.prepare("SELECT scope, method, energy_j, duration_s, tokens, "
                                                    "coverage_fraction, cost, carbon_g FROM energy "
                                                    "WHERE run = ? AND kind = ?"));
  FLYBALL_ASSIGN(there, select.bind(1, run).bind(2, std::string_view(kind)).step());
  Account account;
  if (!there) return account;
  account.scope = parse_scope(select.text(0)).value_or(Scope::unknown);
  account.method = select.text(1);
  account.energy = Joules(select.number(2));
  account.duration = Seconds(select.number(3));
  account.tokens = select.number(4);
  account.coverage_fraction = select.number(5);
  account.cost = select.number(6);
  account.carbon_g = select.number(7);
  return account;
}

Result<RunRow> Ledger::State::row(const Statement& r) {
  RunRow row;
  row.id = r.integer(0);
  FLYBALL_ASSIGN(row.state, parse_state(r.text(1)));
  row.start.plant = r.text(2);
  row.start.policy = r.text(3);
  const std::string seed = r.text(4);
  std::from_chars(seed.data(), seed.data() + seed.size(), row.start.seed);
  row.start.version = r.text(5);
  row.start.arguments = r.text(6);
  row.start.started = WallTime(r.integer(7));
  row.decisions = static_cast<std::uint64_t>(r.integer(21));
  row.start.recorded = WallTime(r.integer(22));
  if (r.is_null(8)) return row;
  row.finished = WallTime(r.integer(8));
  RunResult result;
  result.plant = row.start.plant;
  result.policy = row.start.policy;
  result.seed = row.start.seed;
  result.started = row.start.started;
  result.saved_fraction = estimate(r, 9);
  result.loss_fraction = estimate(r, 13);
  result.saved_basis = r.text(17);
  result.writes = static_cast<std::uint64_t>(r.integer(18));
  result.writes_refused = static_cast<std::uint64_t>(r.integer(19));
  result.restored = r.integer(20) != 0;
  bool there = false;
  FLYBALL_ASSIGN(result.account, account(row.id, "run", there));
  FLYBALL_ASSIGN(const Account counterfactual, account(row.id, "counterfactual", there));
  if (there) result.counterfactual = counterfactual;
  FLYBALL_ASSIGN(result.switchback, switchback(row.id));
  row.result = std::move(result);
  return row;
}

Result<std::vector<RunRow>> Ledger::runs(std::size_t at_most) {
  FLYBALL_ASSIGN(Statement select,
                 state_->database.prepare((std::string(kSelectRun) + "ORDER BY id DESC LIMIT ?").c_str()));
  select.bind(1, static_cast<std::int64_t>(at_most));
  std::vector<RunRow> rows;
  while (true) {
    FLYBALL_ASSIGN(const bool more, select.step());
    if (!more) return rows;
    FLYBALL_ASSIGN(RunRow row, state_->row(select));
    rows.push_back(std::move(row));
  }
}

Result<RunRow> Ledger::run(RunId run) {
  FLYBALL_ASSIGN(Statement select, state_->database.prepare((std::string(kSelectRun) + "WHERE id = ?").c_str()));
  FLYBALL_ASSIGN(const bool there, select.bind(1, run).step());
  if (!there) return fail(ErrorCode::input, "there is no run " + std::to_string(run), path());
  return state_->row(select);
}

Result<std::vector<DecisionRow>> Ledger::decisions(RunId run) {
  FLYBALL_ASSIGN(Statement select,
                 state_->database.prepare(
                     "SELECT d.number, at_ns, device, phase, frozen, reason, power_w, energy_j, tokens_per_second, "
                     "enforced_mw, asked_mw, coverage_fraction FROM decisions d JOIN decision_gpus g "
                     "ON g.run = d.run AND g.number = d.number WHERE d.run = ? ORDER BY d.number, device"));
  select.bind(1, run);
  std::vector<DecisionRow> rows;
  while (true) {
    FLYBALL_ASSIGN(const bool more, select.step());
    if (!more) return rows;
    DecisionRow row;
    row.number = static_cast<std::uint64_t>(select.integer(0));
    row.wall = WallTime(select.integer(1));
    FLYBALL_ASSIGN(row.device, DeviceId::parse(select.text(2)));
    row.phase = select.text(3);
    row.frozen = select.text(4);
    row.reason = select.text(5);
    row.power = sample<Watts>(select, 6);
    row.energy = sample<Joules>(select, 7);
    row.tokens_per_second = sample<double>(select, 8);
    row.limit_enforced = sample<Milliwatts>(select, 9);
    row.asked = sample<Milliwatts>(select, 10);
    row.coverage_fraction = select.number(11);
    rows.push_back(std::move(row));
  }
}

Result<std::vector<Finding>> Ledger::findings(RunId run) {
  FLYBALL_ASSIGN(Statement select,
                 state_->database.prepare("SELECT at_ns, severity, code, device, what, remedy, confidence_fraction "
                                          "FROM findings WHERE run = ? ORDER BY id"));
  select.bind(1, run);
  std::vector<Finding> rows;
  while (true) {
    FLYBALL_ASSIGN(const bool more, select.step());
    if (!more) return rows;
    Finding f;
    f.since = WallTime(select.integer(0));
    f.severity = parse_severity(select.text(1));
    f.code = select.text(2);
    if (const std::string device = select.text(3); !device.empty()) {
      FLYBALL_ASSIGN(f.device, DeviceId::parse(device));
    }
    f.what = select.text(4);
    f.remedy = select.text(5);
    f.confidence_fraction = select.number(6);
    rows.push_back(std::move(f));
  }
}

Result<> Ledger::add_baseline(const BaselineRow& b) {
  FLYBALL_ASSIGN(Statement insert,
                 state_->database.prepare("INSERT OR IGNORE INTO baselines VALUES (?,?,?,?,?,?,?,?,?,?)"));
  insert.bind(1, b.hash).bind(2, b.parent.empty() ? std::nullopt : std::optional<std::string_view>(b.parent));
  insert.bind(3, b.inputs_hash).bind(4, b.subject).bind(5, b.reason).bind(6, b.version).bind(7, b.made_by);
  return insert.bind(8, b.made.nanoseconds()).bind(9, b.valid_from.nanoseconds()).bind(10, b.content).run();
}

namespace {

Result<std::vector<BaselineRow>> read_baselines(Statement& select) {
  std::vector<BaselineRow> made;
  while (true) {
    FLYBALL_ASSIGN(const bool there, select.step());
    if (!there) return made;
    made.push_back({select.text(0), select.is_null(1) ? std::string() : select.text(1), select.text(2), select.text(3),
                    select.text(4), select.text(5), select.text(6), WallTime(select.integer(7)),
                    WallTime(select.integer(8)), select.text(9)});
  }
}

}  // namespace

Result<BaselineRow> Ledger::baseline(const std::string& hash) {
  FLYBALL_ASSIGN(Statement select,
                 state_->database.prepare("SELECT * FROM baselines WHERE substr(hash, 1, length(?1)) = ?1 LIMIT 2"));
  select.bind(1, hash);
  FLYBALL_ASSIGN(auto found, read_baselines(select));
  if (found.size() == 1 && !hash.empty()) return std::move(found.front());
  return fail(
      ErrorCode::input,
      (found.empty() ? "no baseline's hash begins with '" : "more than one baseline's hash begins with '") + hash + "'",
      path(), "give more of it");
}

Result<std::vector<BaselineRow>> Ledger::baselines(const std::string& subject, std::size_t at_most) {
  FLYBALL_ASSIGN(Statement select, state_->database.prepare("SELECT * FROM baselines WHERE subject = ? "
                                                            "ORDER BY made_ns DESC, rowid DESC LIMIT ?"));
  select.bind(1, subject).bind(2, static_cast<std::int64_t>(at_most));
  return read_baselines(select);
}

Result<> Ledger::check() {
  const auto verdict = [&](const char* sql, bool empty_is_good) -> Result<> {
    FLYBALL_ASSIGN(Statement select, state_->database.prepare(sql));
    FLYBALL_ASSIGN(const bool row, select.step());
    if (empty_is_good ? !row : row && select.text(0) == "ok") return {};
    return fail(ErrorCode::failed, "the ledger is damaged: " + (row ? select.text(0) : "no answer"), path(),
                "move the file away (a new one is made) and restore it from a backup");
  };
  FLYBALL_TRY(verdict("PRAGMA integrity_check(1)", false));
  return verdict("PRAGMA foreign_key_check", true);
}

}  // namespace flyball::ledger
