// The common state of engines that use one folder of files: the number of its files, and how often its
// files changed. A file `state` has both, and a lock between all threads and processes guards them.
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
    std::int64_t files = 0;    // those being written included
    std::int64_t changes = 0;  // files that any engine has written, used or removed, since it exists
  };

  // Creates the file if it is missing. Errors: io.
  static Result<std::unique_ptr<SharedFolder>> open(const std::filesystem::path& folder);
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  // Holds the lock. The destructor stores `state` and releases the lock.
  class Locked {
   public:
    explicit Locked(SharedFolder& folder);
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

    // True: no other engine has opened the folder.
    bool alone() const;

    State state{};

   private:
    SharedFolder& folder_;
    const std::lock_guard<std::mutex> lock_;  // between threads; the lock of the file is one for all of them
  };

 private:
  SharedFolder(int state, int users) : state_(state), users_(users) {}

  const int state_;  // descriptor of the locked file of 16 bytes
  const int users_;  // descriptor of a file that each engine locks as one of several while it is open
  std::mutex mutex_;
};

}  // namespace octavo
