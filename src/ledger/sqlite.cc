#include "ledger/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace flyball::ledger {
namespace {

/// A reader's checkpoint or a second writer holds the file for milliseconds; a run must not die of it.
constexpr int kBusyMilliseconds = 5000;
/// The operator's group may read what was done; nobody else.
constexpr mode_t kFileMode = 0640;

const char* remedy_for(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return "free space on that disk, or choose another folder with --state-dir";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "make the folder writable, or choose another one with --state-dir";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another program holds the ledger; try again when it is done";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "move the file away (a new one is made) and restore it from a backup";
    default:
      return "see whether the disk reports errors";
  }
}

/// SQLite would make the file with 0644 whatever we want.
Result<> create_with_mode(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode);
  if (file < 0) {
    return fail(ErrorCode::failed, std::string("the ledger cannot be written: ") + std::strerror(errno), path,
                remedy_for(SQLITE_CANTOPEN));
  }
  ::close(file);
  return {};
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Result<Database> Database::open(const std::string& path, Mode mode) {
  if (mode == Mode::read_write) FLYBALL_TRY(create_with_mode(path));
  Database database;
  database.path_ = path;
  sqlite3* handle = nullptr;
  const int flags = (mode == Mode::read_write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX |
                    SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  database.handle_.reset(handle);
  if (code != SQLITE_OK) return fail(database.error("open the ledger"));
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  FLYBALL_TRY(database.execute("PRAGMA foreign_keys = ON"));
  return database;
}

Error Database::error(std::string_view doing) const {
  const int code = handle_ ? sqlite3_extended_errcode(handle_.get()) : SQLITE_NOMEM;
  const char* text = handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory";
  return {ErrorCode::failed, "cannot " + std::string(doing) + ": " + text, path_, remedy_for(code)};
}

Result<> Database::execute(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) return fail(error("write the ledger"));
  return {};
}

Result<Statement> Database::prepare(const char* sql) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v3(handle_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr) != SQLITE_OK) {
    return fail(error("read the ledger"));
  }
  return Statement(*this, handle);
}

Result<std::int64_t> Database::query_int(const char* sql) {
  FLYBALL_ASSIGN(Statement statement, prepare(sql));
  FLYBALL_ASSIGN(const bool row, statement.step());
  return row ? statement.integer(0) : 0;
}

std::int64_t Database::last_row_id() const { return sqlite3_last_insert_rowid(handle_.get()); }

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Statement& Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(handle_.get(), index, value);
  return *this;
}
Statement& Statement::bind(int index, double value) {
  sqlite3_bind_double(handle_.get(), index, value);  // SQLite keeps NaN as NULL
  return *this;
}
Statement& Statement::bind(int index, std::string_view value) {
  sqlite3_bind_text64(handle_.get(), index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}
Statement& Statement::bind_null(int index) {
  sqlite3_bind_null(handle_.get(), index);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  Error error = database_->error("use the ledger");
  sqlite3_reset(handle_.get());
  if (code == SQLITE_DONE) return false;
  return fail(std::move(error));
}

Result<> Statement::run() {
  while (true) {
    FLYBALL_ASSIGN(const bool row, step());
    if (!row) return {};
  }
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_.get(), column); }
double Statement::number(int column) const { return sqlite3_column_double(handle_.get(), column); }
std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  return bytes == nullptr ? std::string() : std::string(bytes);
}
bool Statement::is_null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }

Result<Transaction> Transaction::begin(Database& database) {
  FLYBALL_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Result<> Transaction::commit() {
  FLYBALL_TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace flyball::ledger
