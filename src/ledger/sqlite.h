#pragma once
// The little of SQLite that the ledger needs, with errors as values. sqlite3.h stays in sqlite.cc.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace flyball::ledger {

class Statement;

class Database {
 public:
  enum class Mode { read_only, read_write };
  static Result<Database> open(const std::string& path, Mode mode);

  /// One or more statements without parameters and rows.
  Result<> execute(const char* sql);
  Result<Statement> prepare(const char* sql);
  Result<std::int64_t> query_int(const char* sql);
  std::int64_t last_row_id() const;
  const std::string& path() const { return path_; }

  /// Turns SQLite's last error into ours: which file, what, and what to do about it.
  Error error(std::string_view doing) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  std::unique_ptr<sqlite3, Close> handle_;
  std::string path_;
};

/// Parameters count from 1, columns from 0, as in SQLite.
class Statement {
 public:
  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view value);
  Statement& bind_null(int index);
  template <class T>
  Statement& bind(int index, const std::optional<T>& value) {
    return value ? bind(index, *value) : bind_null(index);
  }

  /// Runs to the end and makes ready for the next use.
  Result<> run();
  /// True while there is a row; at the end it makes ready for the next use.
  Result<bool> step();

  std::int64_t integer(int column) const;
  double number(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database& database, sqlite3_stmt* handle) : database_(&database), handle_(handle) {}
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// Rolls back unless committed.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(other.database_) { other.database_ = nullptr; }
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace flyball::ledger
