// Stores files and batches in a folder. The folder contains the files' contents; a SQLite database contains
// everything else.
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
inline constexpr std::int64_t kLinesMax = 50'000;  // maximum number of lines in one batch
inline constexpr std::int64_t kUnfinishedMax = 1'000;
// If several clients share the store, each client may use 1/kClientPart of each limit.
inline constexpr std::int64_t kClientPart = 4;

struct PageOf {
  std::string after{};   // id of the last record before the page; "": the page starts with the first record
  std::string before{};  // id of the first record after the page; if it is set, `after` is ignored
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

// Any thread may call these functions. All of them can also return an io error.
class Store {
 public:
  // Opens the store and creates its folder. bytes_max: maximum size of all files and answers together.
  // clients: whether several clients share the store. If another server uses the folder, returns an io error
  // with field "batch-dir".
  static Result<std::unique_ptr<Store>> open(const std::string& folder, std::int64_t bytes_max, bool clients);

  std::string path_of(const std::string& file_id) const { return files_ + "/" + file_id; }

  // Returns resource_exhausted if there is no space for more answers of this owner.
  Result<> check_space(const std::string& owner);

  // Adds a file. Returns resource_exhausted if the store has kFilesMax files, if the content exceeds
  // bytes_max, or if either limit for one client is exceeded.
  Result<StoredFile> add_file(StoredFile file, std::string_view content);
  // file() to batches() return not_found if the owner has no record with the id.
  Result<StoredFile> file(const std::string& owner, const std::string& id);
  // Deletes a file. Returns invalid_argument if an unfinished batch uses the file.
  Result<> remove_file(const std::string& owner, const std::string& id);
  // Deletes a file that no batch reads, even if its purpose is kMessages.
  Result<> discard_file(const std::string& id);
  // Returns a page of the owner's files. purpose: only files with this purpose; "": all files except those
  // with purpose kMessages.
  Result<Page<StoredFile>> files(const std::string& owner, const std::string& purpose, const PageOf& page);

  // Adds the batch and sets its number. Returns resource_exhausted if kUnfinishedMax batches are unfinished,
  // or if the owner has reached the limit for one client.
  Result<Batch> add_batch(Batch batch);
  Result<Batch> batch(const std::string& owner, std::string_view protocol, const std::string& id);
  Result<Page<Batch>> batches(const std::string& owner, std::string_view protocol, const PageOf& page);
  // Returns the unfinished batches, oldest first.
  Result<std::vector<Batch>> unfinished();
  // Changes a batch in one transaction, and returns the new record. If `change` returns an error, the batch
  // stays as it was.
  Result<Batch> change(const std::string& id, const std::function<Result<>(Batch&)>& change);
  // Adds records for the output files, ends the batch, and deletes its stored answers, because the output
  // files contain them.
  Result<> finish(const Batch& batch, std::span<const StoredFile> files);
  // Deletes an ended batch and its files. Returns invalid_argument if the batch has not ended.
  Result<> remove_batch(const Batch& batch);

  // Adds answers. Skips lines that already have an answer.
  Result<> add_answers(std::span<const LineAnswer> answers);
  Result<std::set<std::int64_t>> answered(const std::string& batch);
  Result<AnswerCounts> counts(const std::string& batch);
  // Returns at most `limit` answers to lines with a number above `line`, in ascending order.
  Result<std::vector<LineAnswer>> answers_after(const std::string& batch, std::int64_t line, int limit);

 private:
  Store(Sqlite database, std::string files, std::int64_t bytes_max, bool clients)
      : database_(std::move(database)), files_(std::move(files)), bytes_max_(bytes_max), clients_(clients) {}
  Result<> has_space(const std::string& owner, std::int64_t more);
  struct Limit {
    std::string_view what;  // the limited resource, such as "files"
    std::string_view name;
    std::string_view remedy;
    std::int64_t most;
  };
  // Returns resource_exhausted if `more` would exceed the limit. used: current amount of all owners together.
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

  std::mutex mutex_;
  Sqlite database_;
  const std::string files_;  // folder of the files' contents
  const std::int64_t bytes_max_;
  const bool clients_;
  // bytes of the answers of unfinished batches, by owner
  std::map<std::string, std::int64_t> answer_bytes_;
};

}  // namespace octavo::batches
