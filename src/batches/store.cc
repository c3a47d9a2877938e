#include "batches/store.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/quoted_text.h"
#include "batches/batch_files.h"
#include "batches/line.h"

namespace octavo::batches {
namespace {

namespace fs = std::filesystem;

// Version of the tables, stored as SQLite's user_version. A file with another version is refused. The columns
// have the order of the fields in records.h.
constexpr int kSchema = 1;
constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS files (number INTEGER PRIMARY KEY, id TEXT UNIQUE, owner TEXT, filename TEXT, purpose TEXT,
    bytes INTEGER, created_at INTEGER, expires_at INTEGER);
  CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, id TEXT UNIQUE, owner TEXT, protocol TEXT, status TEXT,
    endpoint TEXT, input_file TEXT, output_file TEXT, error_file TEXT, metadata TEXT, errors TEXT, output_keep_s INTEGER,
    created_at INTEGER, in_progress_at INTEGER, cancelling_at INTEGER, finalizing_at INTEGER,
    ended_at INTEGER, total INTEGER, completed INTEGER, failed INTEGER);
  CREATE TABLE IF NOT EXISTS answers (batch TEXT, line INTEGER, custom_id TEXT, status INTEGER, body TEXT,
    PRIMARY KEY (batch, line)) WITHOUT ROWID;
  PRAGMA user_version = 1)";

constexpr std::string_view kUnfinished =
    "status IN ('validating', 'in_progress', 'cancelling', 'finalizing')";

}  // namespace

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<std::unique_ptr<Store>> Store::open(const std::string& folder, std::int64_t bytes_max, bool clients) {
  const auto named = [](Error error) {
    error.field = "batch-dir";
    return std::unexpected(std::move(error));
  };
  const std::string files = folder + "/files";
  std::error_code error;
  fs::create_directories(files, error);
  if (error) return named({ErrorCode::io, fmt::format("cannot create {}: {}", files, error.message()), {}});
  auto database = Sqlite::open(folder + "/batches.db");
  if (!database)
    return named({ErrorCode::io,
                  fmt::format("cannot use {} ({}): each server needs a folder that no other server uses",
                              folder, database.error().message),
                  {}});
  const auto version = database->number("PRAGMA user_version");
  if (!version) return named(version.error());
  if (*version != 0 && *version != kSchema)
    return named(
        {ErrorCode::unsupported,
         fmt::format("{} has version {} of the batch database, but this program needs {}: use another folder",
                     folder, *version, kSchema),
         {}});
  if (const auto made = database->script(kTables); !made) return named(made.error());
  std::unique_ptr<Store> store(new Store(*std::move(database), files, bytes_max, clients));
  TRY_VOID(store->remove_leftovers());
  TRY_VOID(store->count_answers());
  return store;
}

// Deletes files without a record. A server that was killed can leave such files.
Result<> Store::remove_leftovers() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(files_, error)) {
    TRY(const std::int64_t known,
        database_.number("SELECT COUNT(*) FROM files WHERE id = ?", entry.path().filename().string()));
    if (known == 0) fs::remove(entry.path(), error);
  }
  return {};
}

Result<> Store::count_answers() {
  TRY(Statement rows,
      database_.prepare("SELECT owner, SUM(LENGTH(body)) FROM answers JOIN batches ON batch = id "
                        "GROUP BY owner"));
  answer_bytes_.clear();
  while (true) {
    TRY(const bool found, rows.step());
    if (!found) return {};
    std::string owner;
    rows.read(0, owner);
    rows.read(1, answer_bytes_[owner]);
  }
}

Result<> Store::within(const Limit& limit, std::int64_t used, std::int64_t used_by_owner,
                       std::int64_t more) const {
  const auto& [what, name, remedy, most] = limit;
  if (used + more > most)
    return failure(ErrorCode::resource_exhausted, "the server has {} {}, and {} more exceed {} {}: {}", used,
                   what, more, name, most, remedy);
  if (const std::int64_t part = most / kClientPart; clients_ && used_by_owner + more > part)
    return failure(ErrorCode::resource_exhausted,
                   "you have {} {}, and {} more exceed {}, the limit of one client (a quarter of {} {}): {}",
                   used_by_owner, what, more, part, name, most, remedy);
  return {};
}

Result<> Store::has_space(const std::string& owner, std::int64_t more) {
  TRY(const std::int64_t files, database_.number("SELECT COALESCE(SUM(bytes), 0) FROM files"));
  TRY(const std::int64_t own,
      database_.number("SELECT COALESCE(SUM(bytes), 0) FROM files WHERE owner = ?", owner));
  std::int64_t answers = 0;
  for (const auto& [_, bytes] : answer_bytes_) answers += bytes;
  const auto own_answers = answer_bytes_.find(owner);
  const Limit limit{.what = "bytes of files and batches",
                    .name = "--batch-dir-bytes",
                    .remedy = "delete files (DELETE /v1/files/ID), or raise the flag",
                    .most = bytes_max_};
  return within(limit, files + answers, own + (own_answers == answer_bytes_.end() ? 0 : own_answers->second),
                more);
}

Result<> Store::check_space(const std::string& owner) {
  const std::lock_guard lock(mutex_);
  TRY_VOID(remove_expired());
  return has_space(owner, 0);
}

Result<> Store::remove_expired() {
  const std::string read = fmt::format("SELECT input_file FROM batches WHERE {}", kUnfinished);
  TRY(const std::vector<StoredFile> old,
      database_.select<StoredFile>(
          fmt::format("files WHERE expires_at > 0 AND expires_at <= ? AND id NOT IN ({})", read),
          unix_time()));
  for (const StoredFile& file : old) {
    TRY_VOID(database_.run("DELETE FROM files WHERE id = ?", file.id));
    std::error_code ignored;
    fs::remove(path_of(file.id), ignored);
  }
  return {};
}

template <class Record>
Result<Record> Store::one(const std::string& table, const std::string& condition, const std::string& owner,
                          const std::string& kind, const std::string& id) {
  TRY(std::vector<Record> found,
      database_.select<Record>(table + " WHERE owner = ? AND " + condition + " AND id = ?", owner, kind, id));
  if (found.empty())
    return failure(ErrorCode::not_found, "the {} {} does not exist", table == "files" ? "file" : "batch",
                   quoted_text(id.substr(0, 100)));
  return std::move(found.front());
}

template <class Record>
Result<Page<Record>> Store::page(const std::string& table, const std::string& condition,
                                 const std::string& owner, const std::string& kind, const PageOf& page) {
  const bool back = !page.before.empty();
  const std::string& anchor = back ? page.before : page.after;
  const bool ascending = page.oldest_first != back;  // a page that ends before a record is read in reverse
                                                     // order
  std::string rest = table + " WHERE owner = ? AND " + condition;
  std::int64_t number = 0;
  if (!anchor.empty()) {
    TRY(const Record found, one<Record>(table, condition, owner, kind, anchor));
    number = found.number;
    rest += ascending ? " AND number > ?" : " AND number < ?";
  } else {
    rest += " AND number > ?";
  }
  rest += fmt::format(" ORDER BY number {} LIMIT {}", ascending ? "ASC" : "DESC", page.limit + 1);
  TRY(std::vector<Record> records, database_.select<Record>(rest, owner, kind, number));
  const bool has_more = std::ssize(records) > page.limit;
  if (has_more) records.pop_back();
  if (back) std::ranges::reverse(records);
  return Page<Record>{std::move(records), has_more};
}

Result<StoredFile> Store::add_file(StoredFile file, std::string_view content) {
  {
    const std::lock_guard lock(mutex_);
    TRY_VOID(remove_expired());
    TRY(const std::int64_t count, database_.number("SELECT COUNT(*) FROM files"));
    TRY(const std::int64_t own, database_.number("SELECT COUNT(*) FROM files WHERE owner = ?", file.owner));
    constexpr Limit kFiles{.what = "files",
                           .name = "the maximum",
                           .remedy = "delete some (DELETE /v1/files/ID)",
                           .most = kFilesMax};
    TRY_VOID(within(kFiles, count, own, 1));
    TRY_VOID(has_space(file.owner, std::ssize(content)));
  }
  DurableFile written(path_of(file.id));
  written.write(content);
  TRY_VOID(written.commit());
  const std::lock_guard lock(mutex_);
  TRY(file.number, database_.number("SELECT COALESCE(MAX(number), 0) + 1 FROM files"));
  file.bytes = std::ssize(content);
  if (const auto put = database_.put("INSERT OR REPLACE", "files", file); !put) {
    std::error_code ignored;
    fs::remove(path_of(file.id), ignored);
    return std::unexpected(put.error());
  }
  return file;
}

Result<StoredFile> Store::file(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  TRY_VOID(remove_expired());
  return one<StoredFile>("files", "purpose != ?", owner, std::string(kMessages), id);
}

Result<> Store::remove_file(const std::string& owner, const std::string& id) {
  TRY_VOID(file(owner, id));
  const std::lock_guard lock(mutex_);
  TRY(const std::vector<Batch> readers,
      database_.select<Batch>(fmt::format("batches WHERE input_file = ? AND {}", kUnfinished), id));
  if (!readers.empty())
    return invalid("file_id", "the batch {} reads the file: cancel the batch first, or wait for its end",
                   readers.front().id);
  TRY_VOID(database_.run("DELETE FROM files WHERE id = ?", id));
  std::error_code ignored;
  fs::remove(path_of(id), ignored);
  return {};
}

Result<> Store::discard_file(const std::string& id) {
  const std::lock_guard lock(mutex_);
  TRY_VOID(database_.run("DELETE FROM files WHERE id = ?", id));
  std::error_code ignored;
  fs::remove(path_of(id), ignored);
  return {};
}

Result<Page<StoredFile>> Store::files(const std::string& owner, const std::string& purpose,
                                      const PageOf& page) {
  const std::lock_guard lock(mutex_);
  TRY_VOID(remove_expired());
  if (purpose.empty())
    return this->page<StoredFile>("files", "purpose != ?", owner, std::string(kMessages), page);
  return this->page<StoredFile>("files", "purpose = ? AND purpose != 'message_batch'", owner, purpose, page);
}

Result<Batch> Store::add_batch(Batch batch) {
  const std::lock_guard lock(mutex_);
  const std::string count = fmt::format("SELECT COUNT(*) FROM batches WHERE {}", kUnfinished);
  TRY(const std::int64_t unfinished, database_.number(count));
  TRY(const std::int64_t own, database_.number(count + " AND owner = ?", batch.owner));
  constexpr Limit kBatches{
      .what = "unfinished batches", .name = "the maximum", .remedy = "retry later", .most = kUnfinishedMax};
  TRY_VOID(within(kBatches, unfinished, own, 1));
  TRY(batch.number, database_.number("SELECT COALESCE(MAX(number), 0) + 1 FROM batches"));
  TRY_VOID(database_.put("INSERT OR REPLACE", "batches", batch));
  return batch;
}

Result<Batch> Store::batch(const std::string& owner, std::string_view protocol, const std::string& id) {
  const std::lock_guard lock(mutex_);
  return one<Batch>("batches", "protocol = ?", owner, std::string(protocol), id);
}

Result<Page<Batch>> Store::batches(const std::string& owner, std::string_view protocol, const PageOf& page) {
  const std::lock_guard lock(mutex_);
  return this->page<Batch>("batches", "protocol = ?", owner, std::string(protocol), page);
}

Result<std::vector<Batch>> Store::unfinished() {
  const std::lock_guard lock(mutex_);
  return database_.select<Batch>(fmt::format("batches WHERE {} ORDER BY number", kUnfinished));
}

Result<Batch> Store::change(const std::string& id, const std::function<Result<>(Batch&)>& change) {
  const std::lock_guard lock(mutex_);
  Batch batch;
  const Result<> done = database_.together([&]() -> Result<> {
    TRY(std::vector<Batch> found, database_.select<Batch>("batches WHERE id = ?", id));
    if (found.empty()) return failure(ErrorCode::not_found, "the batch {} does not exist", quoted_text(id));
    batch = std::move(found.front());
    TRY_VOID(change(batch));
    return database_.put("INSERT OR REPLACE", "batches", batch);
  });
  if (!done) return std::unexpected(done.error());
  return batch;
}

Result<> Store::finish(const Batch& batch, std::span<const StoredFile> files) {
  const std::lock_guard lock(mutex_);
  const auto done = database_.together([&]() -> Result<> {
    for (StoredFile file : files) {
      TRY(file.number, database_.number("SELECT COALESCE(MAX(number), 0) + 1 FROM files"));
      TRY_VOID(database_.put("INSERT OR REPLACE", "files", file));
    }
    TRY_VOID(database_.put("INSERT OR REPLACE", "batches", batch));
    return database_.run("DELETE FROM answers WHERE batch = ?", batch.id);
  });
  return done ? count_answers() : done;
}

Result<> Store::remove_batch(const Batch& batch) {
  if (!batch.ended())
    return invalid("message_batch_id", "{} has not ended: cancel it first, or wait for its end", batch.id);
  const std::lock_guard lock(mutex_);
  return database_.together([&]() -> Result<> {
    for (const std::string& file : {batch.input_file, batch.output_file}) {
      if (file.empty()) continue;
      TRY_VOID(database_.run("DELETE FROM files WHERE id = ?", file));
      std::error_code ignored;
      fs::remove(path_of(file), ignored);
    }
    return database_.run("DELETE FROM batches WHERE id = ?", batch.id);
  });
}

Result<> Store::add_answers(std::span<const LineAnswer> answers) {
  const std::lock_guard lock(mutex_);
  const auto done = database_.together([&]() -> Result<> {
    for (const LineAnswer& answer : answers) TRY_VOID(database_.put("INSERT OR IGNORE", "answers", answer));
    return {};
  });
  if (!done) return done;
  std::map<std::string, std::int64_t> bytes;  // bytes of the new answers of each batch
  for (const LineAnswer& answer : answers) bytes[answer.batch] += std::ssize(answer.body);
  for (const auto& [batch, more] : bytes) {
    TRY(const std::vector<Batch> found, database_.select<Batch>("batches WHERE id = ?", batch));
    for (const Batch& each : found) answer_bytes_[each.owner] += more;
  }
  return {};
}

Result<std::set<std::int64_t>> Store::answered(const std::string& batch) {
  const std::lock_guard lock(mutex_);
  TRY(Statement rows, database_.prepare("SELECT line FROM answers WHERE batch = ?", batch));
  std::set<std::int64_t> lines;
  while (true) {
    TRY(const bool found, rows.step());
    if (!found) return lines;
    std::int64_t line = 0;
    rows.read(0, line);
    lines.insert(line);
  }
}

Result<AnswerCounts> Store::counts(const std::string& batch) {
  const std::lock_guard lock(mutex_);
  AnswerCounts counts;
  TRY(counts.completed,
      database_.number("SELECT COUNT(*) FROM answers WHERE batch = ? AND status = 200", batch));
  TRY(counts.failed,
      database_.number("SELECT COUNT(*) FROM answers WHERE batch = ? AND status != 200", batch));
  return counts;
}

Result<std::vector<LineAnswer>> Store::answers_after(const std::string& batch, std::int64_t line, int limit) {
  const std::lock_guard lock(mutex_);
  return database_.select<LineAnswer>(
      fmt::format("answers WHERE batch = ? AND line > ? ORDER BY line LIMIT {}", limit), batch, line);
}

}  // namespace octavo::batches
