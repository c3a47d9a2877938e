// Typed access to SQLite. A row is a struct of strings and integers, whose fields are the table's columns
// in the same order.
#pragma once

#include <boost/pfr.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace octavo::batches {

class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement);
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;

  // `index` starts at 1. Strings are copied.
  void bind(int index, std::int64_t value);
  void bind(int index, std::string_view value);
  // Moves to the next row. Returns false after the last row, and an io error on failure.
  Result<bool> step();
  // `column` starts at 0.
  void read(int column, std::int64_t& out) const;
  void read(int column, std::string& out) const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
};

// Only one thread at a time may use a connection.
class Sqlite {
 public:
  // Opens or creates the file with an exclusive lock. Returns an io error if the file cannot be opened or
  // another process has locked it.
  static Result<Sqlite> open(const std::string& path);
  ~Sqlite();
  Sqlite(Sqlite&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Sqlite& operator=(Sqlite&&) = delete;

  // Runs statements without parameters, separated by ';'.
  Result<> script(const char* sql);

  template <class... Values>
  Result<Statement> prepare(const std::string& sql, const Values&... values) {
    TRY(Statement statement, prepare_text(sql));
    int index = 0;
    (statement.bind(++index, values), ...);
    return statement;
  }

  template <class... Values>
  Result<> run(const std::string& sql, const Values&... values) {
    TRY(Statement statement, prepare(sql, values...));
    TRY_VOID(statement.step());
    return {};
  }

  // Returns the first column of the first row, or 0 if the result has no rows.
  template <class... Values>
  Result<std::int64_t> number(const std::string& sql, const Values&... values) {
    TRY(Statement statement, prepare(sql, values...));
    TRY(const bool found, statement.step());
    std::int64_t value = 0;
    if (found) statement.read(0, value);
    return value;
  }

  // Returns all rows of "SELECT * FROM `rest`".
  template <class Record, class... Values>
  Result<std::vector<Record>> select(const std::string& rest, const Values&... values) {
    TRY(Statement statement, prepare("SELECT * FROM " + rest, values...));
    std::vector<Record> records;
    while (true) {
      TRY(const bool found, statement.step());
      if (!found) return records;
      boost::pfr::for_each_field(records.emplace_back(), [&](auto& field, std::size_t column) {
        statement.read(static_cast<int>(column), field);
      });
    }
  }

  // Inserts a row. `how` is "INSERT OR REPLACE" or "INSERT OR IGNORE".
  template <class Record>
  Result<> put(const std::string& how, const std::string& table, const Record& record) {
    std::string sql = how + " INTO " + table + " VALUES (?";
    for (std::size_t i = 1; i < boost::pfr::tuple_size_v<Record>; ++i) sql += ", ?";
    TRY(Statement statement, prepare_text(sql + ")"));
    boost::pfr::for_each_field(record, [&](const auto& field, std::size_t column) {
      statement.bind(static_cast<int>(column) + 1, field);
    });
    TRY_VOID(statement.step());
    return {};
  }

  // Runs `work` in a transaction, which is rolled back if `work` returns an error.
  template <class Work>
  Result<> together(Work&& work) {
    TRY_VOID(script("BEGIN IMMEDIATE"));
    Result<> done = work();
    if (done) done = script("COMMIT");
    if (!done) (void)script("ROLLBACK");
    return done;
  }

 private:
  explicit Sqlite(sqlite3* database) : database_(database) {}
  Result<Statement> prepare_text(const std::string& sql);

  sqlite3* database_;
};

}  // namespace octavo::batches
