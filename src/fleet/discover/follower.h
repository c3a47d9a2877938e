// A thread that repeats a call, such as reading a list of endpoints. Each consecutive failure makes the pause
// between the calls longer.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"

namespace octavo::fleet {

struct FollowerOptions {
  std::string source = {};    // name in log messages, such as "Kubernetes, /api/v1/pods"
  int interval_ms = 0;        // pause between two calls, in ms
  int pause_ms_max = 30'000;  // maximum pause after failures, in ms
  // appended to the log message about a failure
  std::string while_failing = "keeping the known endpoints";
};

class Follower {
 public:
  // `once` returns an error after a failure. It must return soon after stopped() becomes true.
  Follower(FollowerOptions options, std::function<Result<>()> once);
  ~Follower();

  void stop();
  bool stopped() { return !pause(0); }

 private:
  void run();
  bool pause(int ms);

  const FollowerOptions options_;
  const std::function<Result<>()> once_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace octavo::fleet
