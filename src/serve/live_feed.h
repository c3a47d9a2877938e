// Sends snapshots of the first engine's state to the web page at `/`, several times a second, as server-sent
// events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/exchange.h"
#include "request/engine_client.h"
#include "serve/metrics.h"

namespace octavo {

class LiveFeed {
 public:
  // Keeps references to both arguments.
  LiveFeed(EngineClient& engine, const Metrics& metrics);
  ~LiveFeed() { stop(); }

  // Starts a stream, which ends when the client disconnects or the feed stops. Returns false if there are
  // too many streams or the feed has stopped.
  bool add(std::shared_ptr<http::Exchange> exchange);

  void stop();

 private:
  void run();
  std::string snapshot();

  EngineClient& engine_;
  const Metrics& metrics_;
  std::int64_t last_step_ = 0;
  std::int64_t looked_us_ = 0;  // time at which the feed last requested the prefix tree
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<http::Exchange>> watchers_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
