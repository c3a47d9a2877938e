// Files and batches in a folder: contents as files, everything else in a SQLite database.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "batches/records.h"
#include "batches/sqlite.h"

namespace octavo::batches {

inline constexpr std::int64_t kFilesMax = 10'000;
inline constexpr std::int64_t kLinesMax = 50'000;      // maximum lines of a batch
inline constexpr std::int64_t kUnfinishedMax = 1'000;  // maximum number of unfinished batches
// With several clients, each has at most this part of every limit of the store.
inline constexpr std::int64_t kClientPart = 4;

struct PageOf {
  std::string after{};   // id of the last record before the page; "": from the start
  std::string before{};  // id of the first record after the page; used instead of `after`
  std::int64_t limit = 20;
  bool oldest_first = false;
};
template <class Record>
struct Page {
  std::vector<Record> records;
  bool has_more = false;
};

struct AnswerCounts {
  std::int64_t completed = 0, failed = 0;
};

std::int64_t unix_time();

// Safe from any thread. All functions can also return the error io.
class Store {
 public:
  // Creates the folder. bytes_max: maximum bytes of all files and answers. clients: whether several clients
  // share the store. Errors: io, also if another server uses the folder (field "batch-dir").
  static Result<std::unique_ptr<Store>> open(const std::string& folder, std::int64_t bytes_max, bool clients);

  std::string path_of(const std::string& file_id) const { return files_ + "/" + file_id; }

  // Errors: resource_exhausted if the owner has no space left for an answer.
  Result<> check_space(const std::string& owner);

  // Errors: resource_exhausted if there are kFilesMax files, or the content does not fit, or the owner has
  // its part of either.
  Result<StoredFile> add_file(StoredFile file, std::string_view content);
  // Errors of the next functions: not_found.
  Result<StoredFile> file(const std::string& owner, const std::string& id);
  // Errors: also invalid_argument while an unfinished batch uses the file.
  Result<> remove_file(const std::string& owner, const std::string& id);
  // A file that no batch reads, hidden ones too.
  Result<> discard_file(const std::string& id);
  // Without the hidden ones. purpose "": all.
  Result<Page<StoredFile>> files(const std::string& owner, const std::string& purpose, const PageOf& page);

  // Adds the batch and sets its number. Errors: resource_exhausted if kUnfinishedMax batches are unfinished,
  // or the owner's part of them.
  Result<Batch> add_batch(Batch batch);
  Result<Batch> batch(const std::string& owner, std::string_view protocol, const std::string& id);
  Result<Page<Batch>> batches(const std::string& owner, std::string_view protocol, const PageOf& page);
  // Unfinished batches, oldest first.
  Result<std::vector<Batch>> unfinished();
  // Changes a batch in one transaction, and returns the new record. Nothing changes if `change` fails.
  Result<Batch> change(const std::string& id, const std::function<Result<>(Batch&)>& change);
  // Adds the records of the output files and ends the batch, whose answers are deleted: the files contain
  // them.
  Result<> finish(const Batch& batch, std::span<const StoredFile> files);
  // Removes an ended batch and its files. Errors: invalid_argument if the batch is unfinished.
  Result<> remove_batch(const Batch& batch);

  // Adds answers. Ignores an answer to a line that already has one.
  Result<> add_answers(std::span<const LineAnswer> answers);
  Result<std::set<std::int64_t>> answered(const std::string& batch);
  Result<AnswerCounts> counts(const std::string& batch);
  // At most `limit` answers to lines after `line`, in order.
  Result<std::vector<LineAnswer>> answers_after(const std::string& batch, std::int64_t line, int limit);

 private:
  Store(Sqlite database, std::string files, std::int64_t bytes_max, bool clients)
      : database_(std::move(database)), files_(std::move(files)), bytes_max_(bytes_max), clients_(clients) {}
  Result<> has_space(const std::string& owner, std::int64_t more);
  struct Limit {
    std::string_view what;    // "files", ..
    std::string_view name;    // the limit's name
    std::string_view remedy;  // what the client can do
    std::int64_t most;
  };
  // used: by all, and by the owner, before `more` is added. Errors: resource_exhausted.
  Result<> within(const Limit& limit, std::int64_t used, std::int64_t used_by_owner, std::int64_t more) const;
  Result<> count_answers();
  Result<> remove_leftovers();
  Result<> remove_expired();
  template <class Record>
  Result<Page<Record>> page(const std::string& table, const std::string& condition, const std::string& owner,
                            const std::string& kind, const PageOf& page);
  template <class Record>
  Result<Record> one(const std::string& table, const std::string& condition, const std::string& owner,
                     const std::string& kind, const std::string& id);

  std::mutex mutex_;  // guards the database
  Sqlite database_;
  const std::string files_;  // folder of the files' contents
  const std::int64_t bytes_max_;
  const bool clients_;
  std::map<std::string, std::int64_t> answer_bytes_;  // size of the answers of unfinished batches, by owner
};

}  // namespace octavo::batches
