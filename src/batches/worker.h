// The thread that runs the lines of unfinished batches.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "batches/line.h"
#include "batches/line_runner.h"
#include "batches/store.h"

namespace octavo::batches {

// Starts batches in the order of their creation. When all lines of a batch have started, starts lines of the
// next batch. A line starts only if Host::has_room() is true or no other line is running.
class Worker {
 public:
  Worker(std::shared_ptr<Store> store, HostPtr host);
  ~Worker() { stop(); }

  // Call this after a batch was added or cancelled. Any thread may call it.
  void wake();
  // Aborts the running lines. They run again when the server next starts. Any thread may call it.
  void stop();

 private:
  struct Active {
    Batch batch;
    // the input file; nullopt before the first line starts and after the last one has started
    std::optional<LineReader> lines{};
    std::set<std::int64_t> answered{};
    int open = 0;
    bool exhausted = false;
    std::string_view end = kCompleted;  // status that the batch gets after its last line
    std::string errors{};               // JSON array of errors, if `end` is kFailed
  };

  void run();
  Result<> refresh();
  void advance();
  Result<> advance(Active& active);
  Result<> validate(Active& active);
  Result<> start_lines(Active& active);
  void end_early(Active& active, std::string_view status);
  void fail(Active& active, std::string_view code, std::string message);
  bool has_room(const std::string& owner) const;
  void take(std::vector<LineRunner::Ended> ended);
  void save_answers();

  const std::shared_ptr<Store> store_;
  const HostPtr host_;
  LineRunner runner_;
  std::list<Active> active_;
  std::vector<LineAnswer> unsaved_;  // answers that are not in the database yet
  std::atomic<bool> news_ = true;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo::batches
