// Runs lines of batches as requests of this process. Used by the server's batches and by `octavo run-batch`.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "batches/line.h"
#include "http/local_exchange.h"
#include "serve/service.h"

namespace octavo::batches {

// One thread calls it; wake() is for any thread.
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

  // client: the tenant of the requests. A line that the full or unavailable server refuses (429, 503) is
  // tried again, unless its own `timeout` is over: in the background until it is taken, less and less often
  // after 503; otherwise 100 times while no other line runs.
  LineRunner(std::weak_ptr<Service> service, http::Request::Origin origin);
  ~LineRunner();

  void start(Job job, std::string client);
  // Returns the lines that have ended: at once if there are some, else after the next one, a wake(), or `ms`.
  std::vector<Ended> wait(int ms);
  // Ends the running lines of a batch, or all; they are not reported.
  void close(const std::string& batch);
  void close_all();
  void wake();

  int open() const { return static_cast<int>(open_.size()); }

 private:
  // Outlives the runner in the callbacks of requests.
  struct Arrivals {
    std::mutex mutex;
    std::condition_variable changed;
    bool woken = false;
    std::vector<std::pair<std::uint64_t, http::Response>> responses;
  };
  struct Open {
    Job job;
    std::string client;
    std::shared_ptr<http::LocalExchange> exchange;  // null: waits for its next try
    std::int64_t next_try_us = 0;
    int unavailable = 0;  // answers 503 so far
  };

  void send(std::uint64_t id, Open& open);
  bool may_try_again(const http::Response& response);
  int ms_to_next_try(int ms) const;

  const std::weak_ptr<Service> service_;
  const http::Request::Origin origin_;
  const std::shared_ptr<Arrivals> arrivals_ = std::make_shared<Arrivals>();
  std::map<std::uint64_t, Open> open_;
  std::uint64_t last_id_ = 0;
  int retrying_ = 0;     // lines of open_ that wait for their next try
  int tries_alone_ = 0;  // since a line has ended
};

}  // namespace octavo::batches
