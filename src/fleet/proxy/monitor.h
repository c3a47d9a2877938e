// Asks every endpoint from time to time how it is: health, metrics, models.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "fleet/proxy/dispatcher.h"
#include "http/async_client.h"

namespace octavo::fleet {

// Must outlive the client whose loop it runs on.
class Monitor {
 public:
  Monitor(Dispatcher& dispatcher, http::ClientLoop& loop) : dispatcher_(dispatcher), loop_(loop) {}
  void start();

  // GET /v1/models of all endpoints together; of equal ids the first one found.
  std::string models_json() const;

 private:
  struct Times {  // of the next questions
    std::int64_t probe_us = 0;
    std::int64_t metrics_us = 0;
    std::int64_t models_us = 0;
  };

  void tick();
  void ask(const Member& member, std::string_view target, std::function<void(Result<http::Response>)> then);
  void learn_models(EndpointId id, const std::string& page);

  Dispatcher& dispatcher_;
  http::ClientLoop& loop_;
  std::unordered_map<std::string, Times> times_;  // by the endpoint's name
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::map<std::string, std::string>> cards_;  // by endpoint, then by model
};

}  // namespace octavo::fleet
