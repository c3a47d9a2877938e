#include "batches/sqlite.h"

#include <sqlite3.h>

namespace octavo::batches {
namespace {

std::unexpected<Error> sqlite_failure(sqlite3* database) {
  return failure(ErrorCode::io, "the batch database: {}", sqlite3_errmsg(database));
}

}  // namespace

Statement::Statement(sqlite3* database, sqlite3_stmt* statement)
    : database_(database), statement_(statement) {}
Statement::~Statement() { sqlite3_finalize(statement_); }
Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), statement_(std::exchange(other.statement_, nullptr)) {}

void Statement::bind(int index, std::int64_t value) { sqlite3_bind_int64(statement_, index, value); }
void Statement::bind(int index, std::string_view value) {
  sqlite3_bind_text64(statement_, index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

Result<bool> Statement::step() {
  switch (sqlite3_step(statement_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return sqlite_failure(database_);
  }
}

void Statement::read(int column, std::int64_t& out) const { out = sqlite3_column_int64(statement_, column); }
void Statement::read(int column, std::string& out) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  out.assign(text ? text : "", static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

Result<Sqlite> Sqlite::open(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Sqlite database(opened);
  if (code != SQLITE_OK) return sqlite_failure(opened);
  // With these settings, no committed data is lost if the process is killed.
  TRY_VOID(database.script(
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
      "BEGIN EXCLUSIVE; COMMIT"));
  return database;
}

Sqlite::~Sqlite() { sqlite3_close_v2(database_); }

Result<> Sqlite::script(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return sqlite_failure(database_);
  return {};
}

Result<Statement> Sqlite::prepare_text(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    return sqlite_failure(database_);
  return Statement(database_, statement);
}

}  // namespace octavo::batches
