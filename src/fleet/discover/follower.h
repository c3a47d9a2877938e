// A thread that repeats a call, such as reading a list of endpoints. It slows down while the call fails.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"

namespace octavo::fleet {

struct FollowerOptions {
  std::string source = {};    // name in the log, such as "Kubernetes, /api/v1/pods"
  int turn_ms = 0;            // pause between two calls in ms
  int pause_ms_max = 30'000;  // longest pause after failures in ms
  // addition to the log line about a failure
  std::string while_failing = "known endpoints stay until it answers";
};

class Follower {
 public:
  // once(): returns when the call should be repeated; returns an error if it failed. Must return soon after
  // stopped() is true.
  Follower(FollowerOptions options, std::function<Result<>()> once);
  ~Follower();

  void stop();  // waits for the running call
  bool stopped() { return !pause(0); }

 private:
  void run();
  bool pause(int ms);  // false: the follower was stopped

  const FollowerOptions options_;
  const std::function<Result<>()> once_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace octavo::fleet
