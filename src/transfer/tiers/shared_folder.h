// Counters that all engines with the same KV folder share. They are in the file `state`. The lock on this
// file excludes all other threads and processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/error.h"

namespace octavo {

class SharedFolder {
 public:
  struct State {
    std::int64_t files = 0;  // includes temporary files
    // number of times that any engine has written, used or removed a file
    std::int64_t changes = 0;
  };

  // Returns io after a system error.
  static Result<std::unique_ptr<SharedFolder>> open(const std::filesystem::path& folder);
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  // Holds the lock on the folder. The destructor writes `state` and unlocks.
  class Locked {
   public:
    explicit Locked(SharedFolder& folder);
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    // Returns true if no other engine has the folder open.
    bool alone() const;

    State state{};

   private:
    SharedFolder& folder_;
    // All threads share state_ and its file lock, so this lock excludes the other threads.
    const std::lock_guard<std::mutex> lock_;
  };

 private:
  SharedFolder(int state, int users) : state_(state), users_(users) {}

  const int state_;  // descriptor of the file `state` (16 bytes)
  // descriptor of the file `users`; each engine that has the folder open has a shared lock on it
  const int users_;
  std::mutex mutex_;
};

}  // namespace octavo
