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

// Batches start in the order of their creation. When a batch has no more lines to start, lines of the next
// batch start. A line starts only while the host has room; one line may always run.
class Worker {
 public:
  Worker(std::shared_ptr<Store> store, HostPtr host);
  ~Worker() { stop(); }

  // Call it after a batch was added or cancelled. Any thread.
  void wake();
  // Ends the running lines; they run again after the next start. Any thread.
  void stop();

 private:
  struct Active {
    Batch batch;
    std::optional<LineReader> lines{};  // while lines may start: each is an open file
    std::set<std::int64_t> answered{};
    int open = 0;                       // number of running lines
    bool exhausted = false;             // no more lines start
    std::string_view end = kCompleted;  // status of the batch after its last line
    std::string errors{};               // with kFailed: JSON array of errors
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
