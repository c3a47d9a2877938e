// Writes records to the files of a folder, one record per line. A separate thread writes the files, so a
// full or slow disk does not delay requests. Records that exceed a limit are dropped and counted.
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
  std::string dir{};  // created if missing; "": requests are not recorded
  // maximum size of all files; the oldest files are deleted
  std::int64_t bytes_max = std::int64_t{1} << 30;
  bool hashes_only = false;  // whether to omit token ids, parameters and grammars
  bool media = false;        // whether to include the bytes of images and sounds

  static constexpr std::int64_t kBytesMin = std::int64_t{1} << 20;
};

class RecordLog {
 public:
  // Returns an io error on "record" if the folder cannot be created or written.
  static Result<std::unique_ptr<RecordLog>> open(RecordOptions options,
                                                 RecordCounters& counters = record_counters());
  // Writes the queued records first.
  ~RecordLog();

  // Queues a record. Any thread may call it. It never waits for the disk.
  void add(Record&& record) noexcept;
  void drop(RecordDrop reason) { counters_.drop(reason); }

 private:
  static constexpr std::int64_t kWaitingBytesMax = std::int64_t{64} << 20;
  static constexpr std::int64_t kFiles = 8;  // a file has at most bytes_max / kFiles bytes

  RecordLog(RecordOptions options, RecordCounters& counters)
      : options_(std::move(options)), counters_(counters) {}
  void write_all();
  void write(const std::string& line);
  bool start_file();
  bool append(const std::string& line);
  void delete_oldest(std::int64_t bytes_left);

  const RecordOptions options_;
  RecordCounters& counters_;

  // Only the writing thread uses the members from here to `failing_`.
  int file_ = -1;  // file descriptor; -1: no file is open
  std::int64_t file_bytes_ = 0;
  bool failing_ = false;

  std::mutex mutex_;  // guards the members below
  std::condition_variable arrived_;
  std::deque<Record> waiting_;
  std::int64_t waiting_bytes_ = 0;
  bool closed_ = false;
  std::thread thread_;
};

// Returns the files of a folder of records, oldest first, or `path` itself if it is a file. Returns
// not_found if there are no records.
Result<std::vector<std::filesystem::path>> record_files(const std::string& path);

}  // namespace octavo
