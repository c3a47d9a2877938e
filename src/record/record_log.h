// A folder of files with one record on each line. A separate thread writes them, so a full or slow disk
// delays no request. Records that exceed a limit are dropped and counted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "record/record.h"
#include "record/record_counters.h"

namespace octavo {

struct RecordOptions {
  std::string dir{};                               // created if missing; "": requests are not recorded
  std::int64_t bytes_max = std::int64_t{1} << 30;  // maximum size of all files in bytes; the oldest files
                                                   // are deleted
  bool hashes_only = false;                        // records without token ids, parameters and grammars
  bool media = false;                              // records with the bytes of images and sounds

  static constexpr std::int64_t kBytesMin = std::int64_t{1} << 20;
};

class RecordLog {
 public:
  // Errors: io, field "record", if the folder cannot be created or written.
  static Result<std::unique_ptr<RecordLog>> open(RecordOptions options,
                                                 RecordCounters& counters = record_counters());
  // Writes the queued records first.
  ~RecordLog();

  // Queues a record. May be called from any thread, and never blocks on the disk.
  void add(Record&& record) noexcept;
  void drop(RecordDrop reason) { counters_.drop(reason); }

 private:
  static constexpr std::int64_t kWaitingBytesMax = std::int64_t{64} << 20;
  static constexpr std::int64_t kFiles = 8;  // maximum size of a file is bytes_max / kFiles

  RecordLog(RecordOptions options, RecordCounters& counters)
      : options_(std::move(options)), counters_(counters) {}
  void write_all();
  void write(const std::string& line);
  bool start_file();
  bool append(const std::string& line);
  void delete_oldest(std::int64_t bytes_left);

  const RecordOptions options_;
  RecordCounters& counters_;

  // The members below belong to the writing thread.
  int file_ = -1;  // file descriptor; -1: no file is open
  std::int64_t file_bytes_ = 0;
  bool failing_ = false;  // the last write failed

  std::mutex mutex_;  // guards the members below
  std::condition_variable came_;
  std::deque<Record> waiting_;
  std::int64_t waiting_bytes_ = 0;
  bool closed_ = false;
  std::thread thread_;
};

// Returns the files of a folder of records, oldest first. If `path` is a file, it returns this path.
// Errors: not_found.
Result<std::vector<std::filesystem::path>> record_files(const std::string& path);

}  // namespace octavo
