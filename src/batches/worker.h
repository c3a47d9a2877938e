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

// Batches start in the order of their creation; the lines of the next one fill the room that the last lines
// of the one before leave. Lines run while running answers, those of clients included, fill less than three
// quarters of the engine's sequences; one line may always run.
class Worker {
 public:
  Worker(std::shared_ptr<Store> store, std::weak_ptr<Service> service, int max_num_seqs);
  ~Worker() { stop(); }

  // A batch is new, or was cancelled. Any thread.
  void wake();
  // Ends the running lines, which the next start runs again. Any thread.
  void stop();

 private:
  struct Active {
    Batch batch;
    std::optional<LineReader> lines{};  // while lines may start: each is an open file
    std::set<std::int64_t> answered{};
    int open = 0;                       // running lines
    bool exhausted = false;             // no line starts any more
    std::string_view end = kCompleted;  // its status then
  };

  void run();
  Result<> refresh();
  void advance();
  Result<> advance(Active& active);
  Result<> validate(Active& active);
  Result<> start_lines(Active& active);
  void end_early(Active& active, std::string_view status);
  bool has_room() const;
  void take(std::vector<LineRunner::Ended> ended);
  void save_answers();

  const std::shared_ptr<Store> store_;
  const std::weak_ptr<Service> service_;
  const int most_;  // running answers
  LineRunner runner_;
  std::list<Active> active_;
  std::vector<LineAnswer> unsaved_;  // answers that the database does not have yet
  std::atomic<bool> news_ = true;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo::batches
