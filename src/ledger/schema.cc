#include "ledger/schema.h"

namespace flyball::ledger {

// Units end the names. Times are nanoseconds since 1970 in UTC. A missing value is NULL, never 0.
const char* const kMigrations[] = {R"sql(
CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  state TEXT NOT NULL,
  plant TEXT NOT NULL,
  policy TEXT NOT NULL,
  seed TEXT NOT NULL,               -- unsigned 64 bits
  version TEXT NOT NULL,
  arguments TEXT NOT NULL,
  started_ns INTEGER NOT NULL,
  recorded_ns INTEGER NOT NULL,
  finished_ns INTEGER,
  saved_fraction REAL, saved_low REAL, saved_high REAL, saved_level REAL,
  loss_fraction REAL, loss_low REAL, loss_high REAL, loss_level REAL,
  saved_basis TEXT,
  writes INTEGER,
  writes_refused INTEGER,
  restored INTEGER
) STRICT;

CREATE TABLE energy (
  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  kind TEXT NOT NULL,               -- 'run' or 'counterfactual'
  scope TEXT NOT NULL,
  method TEXT NOT NULL,
  energy_j REAL NOT NULL,
  duration_s REAL NOT NULL,
  tokens REAL NOT NULL,
  coverage_fraction REAL NOT NULL,
  cost REAL NOT NULL,
  carbon_g REAL NOT NULL,
  PRIMARY KEY (run, kind)
) STRICT;

CREATE TABLE decisions (
  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  at_ns INTEGER NOT NULL,
  interval_s REAL NOT NULL,
  phase TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  tokens_per_second REAL,
  step_time_s REAL,
  frozen TEXT,
  reason TEXT NOT NULL,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision_gpus (
  run INTEGER NOT NULL,
  number INTEGER NOT NULL,
  device TEXT NOT NULL,
  power_w REAL,
  energy_j REAL,
  utilisation_fraction REAL,
  temperature_c REAL,
  sm_clock_hz REAL,
  enforced_mw INTEGER,
  asked_mw INTEGER,
  throttle INTEGER NOT NULL,
  coverage_fraction REAL NOT NULL,
  PRIMARY KEY (run, number, device),
  FOREIGN KEY (run, number) REFERENCES decisions(run, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE writes (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  number INTEGER NOT NULL,
  device TEXT NOT NULL,
  asked_mw INTEGER NOT NULL,
  accepted_mw INTEGER NOT NULL,
  enforced_mw INTEGER,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  FOREIGN KEY (run, number) REFERENCES decisions(run, number) ON DELETE CASCADE
) STRICT;
CREATE INDEX writes_by_decision ON writes(run, number);

CREATE TABLE findings (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
  at_ns INTEGER NOT NULL,
  severity TEXT NOT NULL,
  code TEXT NOT NULL,
  device TEXT NOT NULL,
  what TEXT NOT NULL,
  remedy TEXT NOT NULL,
  confidence_fraction REAL NOT NULL
) STRICT;
CREATE INDEX findings_by_run ON findings(run);
)sql",
                                   R"sql(
CREATE TABLE switchbacks (            -- of a run that had blocks; doc/switchback.md
  run INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  saved_fraction REAL, saved_low REAL, saved_high REAL, saved_level REAL,
  loss_fraction REAL, loss_low REAL, loss_high REAL, loss_level REAL,
  saved_run_fraction REAL, saved_run_low REAL, saved_run_high REAL, saved_run_level REAL,
  loss_run_fraction REAL, loss_run_low REAL, loss_run_high REAL, loss_run_level REAL,
  half_width_fraction REAL NOT NULL,  -- 0: not known
  p_value REAL NOT NULL,
  block_s REAL NOT NULL,              -- 0: there were no blocks
  blocks_control INTEGER NOT NULL,
  blocks_original INTEGER NOT NULL,
  control_fraction REAL NOT NULL,
  discarded_fraction REAL NOT NULL,
  needed_s REAL NOT NULL              -- 0: not known, or long enough
) STRICT;
)sql",
                                   R"sql(
CREATE TABLE IF NOT EXISTS baselines (
  hash TEXT PRIMARY KEY,            -- SHA-256 of parent, inputs, reason, content and validity
  parent TEXT,                      -- NULL: the first
  inputs_hash TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  version TEXT NOT NULL,            -- of the program
  made_by TEXT NOT NULL,
  made_ns INTEGER NOT NULL,
  valid_from_ns INTEGER NOT NULL,
  content TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS baselines_by_subject ON baselines(subject, made_ns);
)sql"};

}  // namespace flyball::ledger
