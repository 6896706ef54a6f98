#include "guardd/program.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "device/worker/worker_driver.h"
#include "guard/audit_log.h"
#include "guard/client.h"
#include "guard/engine.h"
#include "guard/server.h"
#include "guardd/lock.h"
#include "guardd/notify.h"

namespace flyball::guardd {
namespace {

/// A service's stop may take this long (doc/safety.md: done within 15 s).
constexpr Seconds kLongestRestore{12};
constexpr Seconds kTurn{0.25};

volatile std::sig_atomic_t g_signal = 0;
void on_signal(int signal) { g_signal = signal; }

Result<> make_folder_of(Filesystem& files, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty() || files.exists(folder)) return {};
  return files.make_folders(folder);
}

Result<gid_t> group_id(const std::string& name) {
  if (name.empty()) return static_cast<gid_t>(-1);
  if (const group* entry = ::getgrnam(name.c_str())) return entry->gr_gid;
  return fail(ErrorCode::input, "no such group: " + name, "guard.group", "create it, or leave the key out");
}

Result<std::set<uid_t>> user_ids(const std::vector<std::string>& names, const char* key) {
  std::set<uid_t> ids;
  for (const std::string& name : names) {
    const passwd* entry = ::getpwnam(name.c_str());
    if (entry == nullptr) return fail(ErrorCode::input, "no such user: " + name, key);
    ids.insert(entry->pw_uid);
  }
  return ids;
}

Result<guard::ServerOptions> server_options(const GuardSettings& settings) {
  guard::ServerOptions options;
  options.path = settings.socket;
  FLYBALL_ASSIGN(options.group, group_id(settings.group));
  FLYBALL_ASSIGN(options.rules.site_uids, user_ids(settings.site_users, "guard.site_users"));
  options.rules.site_uids.insert(0);
  FLYBALL_ASSIGN(options.rules.fleet_uids, user_ids(settings.fleet_users, "guard.fleet_users"));
  options.rules.require_allowance = settings.require_allowance;
  return options;
}

/// What lives as long as a guard does. Members end in reverse order: the lock last.
struct House {
  LockFile lock;
  std::unique_ptr<guard::AuditLog> audit;
  std::unique_ptr<guard::Engine> engine;
  bool seal_failed = false;
};

Result<House> open_house(const Options& options, Driver& driver, Clock& clock, Filesystem& files) {
  const GuardSettings& settings = options.settings.guard;
  House house;
  FLYBALL_TRY(make_folder_of(files, settings.journal));
  FLYBALL_TRY(make_folder_of(files, settings.audit));
  FLYBALL_ASSIGN(house.lock, take_lock(settings.journal));
  FLYBALL_ASSIGN(house.audit, guard::AuditLog::open(files, settings.audit));
  guard::EngineParts parts{driver, clock, files, *house.audit};
  parts.expect = [&driver](const std::vector<DeviceId>& devices) { worker::expect(driver, devices); };
  FLYBALL_ASSIGN(house.engine, guard::Engine::start(parts, guard::EngineConfig(options.settings)));
  return house;
}

void seal(House& house) {
  const auto sealed = house.audit->seal();
  if (!sealed && !house.seal_failed) log::warning("guard", "the audit log: {}", sealed.error().message());
  house.seal_failed = !sealed;
}

/// Ends every lease and tries until all boards are back or the time is up.
std::vector<guard::RestoreOutcome> give_back_all(House& house, Clock& clock, const std::string& why) {
  auto outcomes = house.engine->restore_all(why).value_or(std::vector<guard::RestoreOutcome>{});
  const MonoTime deadline = clock.now() + kLongestRestore;
  while (house.engine->restoring() && clock.now() < deadline) {
    clock.sleep_until(clock.now() + kTurn);
    house.engine->tick();
  }
  if (house.engine->restoring()) {
    seal(house);
    return outcomes;
  }
  for (auto& outcome : outcomes) {
    if (outcome.restored || outcome.left_to_other) continue;
    outcome.restored = true;
    outcome.reason = "after further tries";
  }
  seal(house);
  return outcomes;
}

void print(const std::vector<guard::RestoreOutcome>& outcomes, bool json) {
  if (json) {
    std::fputs(guard::restore_document(outcomes).c_str(), stdout);
  } else {
    for (const auto& outcome : outcomes) {
      fmt::print("{}: {}{}{}\n", outcome.device.text(),
                 outcome.restored ? "given back" : (outcome.left_to_other ? "left as it is" : "NOT given back"),
                 outcome.reason.empty() ? "" : ": ", outcome.reason);
    }
    if (outcomes.empty()) fmt::print("nothing of ours is on any board\n");
  }
  std::fflush(stdout);
}

Result<> restore_through(const Options& options) {
  auto client = guard::GuardClient::connect(options.settings.guard.socket);
  auto restored = client ? (*client)->restore_all("flyball-guard restore")
                         : Result<std::vector<guard::RestoreOutcome>>(fail(client.error()));
  if (!restored) {
    return fail(ErrorCode::refused, "a guard runs but does not answer (" + restored.error().what + ")",
                options.settings.guard.socket, "end it (`systemctl kill --signal=KILL flyball-guard`), then ask again");
  }
  std::vector<guard::RestoreOutcome> outcomes = *std::move(restored);
  if (options.lift) {
    FLYBALL_ASSIGN(outcomes, (*client)->lift({}));
  }
  print(outcomes, options.json);
  return judge(outcomes);
}

}  // namespace

int signal_seen() { return g_signal; }

void install_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART: poll(2) returns
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // a closed terminal is no reason to leave limits behind
}

Result<> judge(const std::vector<guard::RestoreOutcome>& outcomes) {
  std::string not_back;
  for (const auto& outcome : outcomes) {
    if (!outcome.restored && !outcome.left_to_other)
      not_back += " " + outcome.device.text() + " (" + outcome.reason + ")";
  }
  if (not_back.empty()) return {};
  return fail(ErrorCode::degraded, "not given back:" + not_back, {},
              "the journal keeps what is owed: `sudo flyball-guard restore` tries again");
}

Result<> serve(const Options& options, Driver& driver, Clock& clock, Filesystem& files) {
  FLYBALL_ASSIGN(House house, open_house(options, driver, clock, files));
  house.engine->tick();  // the boards are listed before anyone asks
  FLYBALL_TRY(make_folder_of(files, options.settings.guard.socket));
  FLYBALL_ASSIGN(auto listen, server_options(options.settings.guard));
  FLYBALL_ASSIGN(auto server, guard::Server::listen(*house.engine, clock, std::move(listen)));
  log::info("guard", "ready at {}; journal {}", options.settings.guard.socket, options.settings.guard.journal);
  notify("READY=1");
  const auto period = watchdog_period();
  MonoTime next_sign = clock.now();
  while (signal_seen() == 0) {
    server->turn(kTurn);
    seal(house);
    if (period && clock.now() >= next_sign) {
      notify("WATCHDOG=1");
      next_sign = clock.now() + *period / 2;
    }
  }
  notify("STOPPING=1");
  server.reset();
  log::info("guard", "signal {}: giving back all limits", signal_seen());
  return judge(give_back_all(house, clock, "the guard stops"));
}

Result<> restore(const Options& options, Driver& driver, Clock& clock, Filesystem& files) {
  if (!files.exists(options.settings.guard.journal)) {
    print({}, options.json);
    return {};
  }
  auto house = open_house(options, driver, clock, files);
  if (!house && house.error().code == ErrorCode::refused) return restore_through(options);
  if (!house) return fail(house.error());
  auto outcomes = give_back_all(*house, clock, "flyball-guard restore");
  if (options.lift) {
    std::vector<DeviceId> held;
    for (const auto& board : house->engine->boards()) {
      if (board.held) held.push_back(board.device);
    }
    FLYBALL_ASSIGN(outcomes, house->engine->lift(Authority::site, held));
    seal(*house);
  }
  print(outcomes, options.json);
  return judge(outcomes);
}

Result<> status(const Options& options) {
  FLYBALL_ASSIGN(const auto client, guard::GuardClient::connect(options.settings.guard.socket));
  FLYBALL_ASSIGN(const std::string document, client->status());
  fmt::print("{}\n", document);
  return {};
}

}  // namespace flyball::guardd
