// Threads that wait for MCP servers. Each MCP server has separate threads, so that a slow one does not delay
// the others.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "serve/mcp/options.h"
#include "serve/worker_pool.h"

namespace octavo::mcp {

class Threads {
 public:
  explicit Threads(const Options& options) {
    for (std::size_t i = 0; i < options.allowed.size(); ++i)
      pools_.push_back(std::make_unique<WorkerPool>(Options::kThreads, Options::kWaitingMax));
    if (!options.allowed.empty()) ends_ = std::make_unique<WorkerPool>(1, Options::kWaitingMax);
  }

  // entry: index in Options::allowed. Returns false if too many tasks wait for a thread of this MCP server,
  // or if the threads have stopped.
  bool try_post(std::size_t entry, std::function<void()> task) {
    return pools_[entry]->try_post(std::move(task));
  }
  // Runs a task that ends a session, on a thread that does not run tool calls. Drops the task if too many
  // tasks are waiting.
  void end(std::function<void()> task) { (void)ends_->try_post(std::move(task)); }
  // Does the same as WorkerPool::stop for all threads.
  void stop() {
    for (const auto& pool : pools_) pool->stop();
    if (ends_) ends_->stop();
  }

 private:
  std::vector<std::unique_ptr<WorkerPool>> pools_;
  std::unique_ptr<WorkerPool> ends_;  // null: no server is allowed
};

}  // namespace octavo::mcp
