// State that the engines of one folder share: the number of files, and the number of changes to files. Both
// are in a file named `state`; its lock excludes all other threads and processes.
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
    std::int64_t files = 0;    // number of files, including those being written
    std::int64_t changes = 0;  // number of files written, used or removed so far, by all engines
  };

  // Creates the file `state` if it is missing. Returns io after a system error.
  static Result<std::unique_ptr<SharedFolder>> open(const std::filesystem::path& folder);
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  // Holds the lock. The destructor writes `state` and releases the lock.
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
    const std::lock_guard<std::mutex> lock_;  // excludes threads of this process, which share the file's lock
  };

 private:
  SharedFolder(int state, int users) : state_(state), users_(users) {}

  const int state_;  // descriptor of the locked file of 16 bytes
  const int users_;  // descriptor of a file on which each engine has a shared lock while it is open
  std::mutex mutex_;
};

}  // namespace octavo
