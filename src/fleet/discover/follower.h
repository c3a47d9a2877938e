// A thread that follows a source of endpoints: it polls, and slows down while that fails.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"

namespace octavo::fleet {

class Follower {
 public:
  // source: name in the log, such as "Kubernetes, /api/v1/pods". once(): runs until it should be repeated, or
  // an error; it returns soon after stopped(). turn_ms: pause between two runs.
  Follower(std::string source, int turn_ms, std::function<Result<>()> once);
  ~Follower();

  bool stopped() { return !pause(0); }

 private:
  void run();
  bool pause(int ms);  // false: stopped

  const std::string source_;
  const int turn_ms_;
  const std::function<Result<>()> once_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace octavo::fleet
