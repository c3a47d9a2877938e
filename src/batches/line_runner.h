// Runs the lines of batches as requests within this process. The server's batches and `octavo run-batch`
// use it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batches/host.h"
#include "batches/line.h"
#include "http/local_exchange.h"

namespace octavo::batches {

// One thread calls all functions except wake(), which any thread may call.
class LineRunner {
 public:
  struct Job {
    std::string batch;
    std::int64_t number = 0;
    Line line;
  };
  struct Ended {
    Job job;
    http::Response response;
  };

  // `origin` decides how often a line with status 429 or 503 is retried. With Origin::background there is no
  // limit, and the intervals grow after each 503. With another origin, the runner gives up after 100 tries in
  // a row while no other line runs. A 503 that the line's own `timeout` field caused is not retried.
  LineRunner(HostPtr host, http::Request::Origin origin);
  ~LineRunner();

  void start(Job job, std::string client);
  // Returns the lines that have ended. If no line has ended, first waits for a line, for wake(), or for
  // `ms` milliseconds.
  std::vector<Ended> wait(int ms);
  // close() and close_all() abort running lines. wait() does not return these lines.
  void close(const std::string& batch);
  void close_all();
  void wake();

  int open() const { return static_cast<int>(open_.size()); }

 private:
  // Responses of ended lines. The callbacks also own this object, because a callback can run after the runner
  // is destroyed.
  struct Arrivals {
    std::mutex mutex;
    std::condition_variable changed;
    bool woken = false;
    std::vector<std::pair<std::uint64_t, http::Response>> responses;
  };
  struct Open {
    Job job;
    std::string client;
    std::shared_ptr<http::LocalExchange> exchange;  // null while the line waits for its next try
    std::int64_t next_try_us = 0;
    int unavailable = 0;  // number of 503 responses so far
  };

  void send(std::uint64_t id, Open& open);
  bool may_try_again(const http::Response& response);
  int ms_to_next_try(int ms) const;

  const HostPtr host_;
  const http::Request::Origin origin_;
  const std::shared_ptr<Arrivals> arrivals_ = std::make_shared<Arrivals>();
  std::map<std::uint64_t, Open> open_;
  std::uint64_t last_id_ = 0;
  int retrying_ = 0;
  int tries_alone_ = 0;  // tries with status 429 or 503 while no other line was running; 0 again whenever a
                         // line ends
};

}  // namespace octavo::batches
