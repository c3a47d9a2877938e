// For tests: starts a router, and workers that the test controls.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dist/tcp_socket.h"
#include "fleet/route/admin.h"
#include "fleet/route/router.h"
#include "http/client.h"
#include "openai/errors.h"

namespace octavo::fleet {

// A worker that responds with its name, or as the test has configured.
class Replica {
 public:
  using Behaviour = std::function<void(std::shared_ptr<http::Exchange>)>;

  explicit Replica(std::string name, Behaviour behaviour = {})
      : name_(std::move(name)), behaviour_(std::move(behaviour)) {
    start();
  }
  void start() {
    server_ = *http::Server::start({.port = static_cast<std::uint16_t>(port_.second)},
                                   [this](std::shared_ptr<http::Exchange> e) { handle(std::move(e)); });
  }
  void stop() { server_.reset(); }

  std::string url() const { return fmt::format("http://127.0.0.1:{}", port_.second); }
  std::atomic<int> requests = 0;
  std::atomic<int> pages = 0;
  std::atomic<int> waiting = 3;     // value in the metrics page
  std::atomic<int> started_s = 10;  // start time in the metrics page
  std::atomic<int> engines = 1;
  std::atomic<bool> well = true;
  // unhealthy, but with kKeepsRequests, like a router that has a queue and no workers
  std::atomic<bool> keeps_requests = false;
  std::atomic<int> probes = 0;
  std::atomic<bool> has_metrics = true;
  // page /engine_metrics, as in SGLang's router; must be set before the router starts
  std::string router_metrics = {};
  // replaces the metrics page if it is not empty; must be set before the router starts
  std::string own_metrics = {};
  std::atomic<bool> has_more = false;
  std::atomic<int> models_failures = 0;  // number of next requests for the models that get a 503
  // cost of /octavo/cost/ID; "": the worker is another engine
  std::string unread_cost = {};
  std::atomic<int> costs_read = 0;

 private:
  std::string metrics() const {
    if (!own_metrics.empty()) return own_metrics;
    std::string page = fmt::format("vllm:num_requests_waiting {}\nprocess_start_time_seconds {}\n",
                                   waiting.load(), started_s.load());
    for (int i = 0; i < engines; ++i)
      page += fmt::format("vllm:num_requests_running{{engine=\"{}\"}} {}\n", i, int{engines > 1});
    return page;
  }
  std::string models() const {
    return R"({"data": [{"id": "m"}, {"id": ")" + name_ + R"(", "parent": "m"})" +
           (has_more ? R"(, {"id": "more"})" : "") + "]}";
  }
  void handle(std::shared_ptr<http::Exchange> e) {
    const std::string& path = e->request().path;
    if (path == "/health") {
      ++probes;
      if (well && !keeps_requests) return e->respond({.status = 200});
      http::Response unready = openai::error_response(503, "the worker is not ready");  // has Retry-After
      if (keeps_requests) unready.headers.set(std::string(kKeepsRequests), "1");
      return e->respond(std::move(unready));
    }
    if (path == "/metrics") {
      if (!has_metrics || !router_metrics.empty()) return e->respond({.status = 404});
      e->respond({.content_type = "text/plain", .body = metrics()});
      return void(++pages);
    }
    if (path == "/engine_metrics") {
      if (router_metrics.empty()) return e->respond({.status = 404});
      e->respond({.content_type = "text/plain", .body = router_metrics});
      return void(++pages);
    }
    if (path == "/v1/models") {
      if (models_failures > 0 && models_failures-- > 0) return e->respond({.status = 503});
      return e->respond({.body = models()});
    }
    if (path.starts_with("/octavo/cost/")) {
      const bool first = ++costs_read == 1;
      if (unread_cost.empty()) return e->respond({.status = 404});
      // the first time, the request has not ended yet
      if (first) return e->respond({.body = R"({"cost":null})"});
      return e->respond({.headers = {{std::string(kCostHeader), unread_cost}}, .body = "{}"});
    }
    ++requests;
    if (behaviour_) return behaviour_(std::move(e));
    e->respond(
        {.content_type = "text/plain",
         .body = name_ + e->request().method + e->request().path + e->request().query + e->request().body});
  }

  std::string name_;
  Behaviour behaviour_;
  const std::pair<Socket, int> port_ = reserve_port().value();  // no other program gets it after stop()
  std::unique_ptr<http::Server> server_;
};

class RouterTest : public testing::Test {
 protected:
  void route(std::vector<std::string> urls, RouterOptions options = {}) {
    options.workers.urls = std::move(urls);
    start(std::move(options));
  }
  void route_apart(std::vector<std::string> prefill, std::vector<std::string> decode) {
    start({.pd = {.enabled = true, .prefill_urls = std::move(prefill), .decode_urls = std::move(decode)}});
  }
  void start(RouterOptions options) {
    const std::size_t replicas =
        options.workers.urls.size() + options.pd.prefill_urls.size() + options.pd.decode_urls.size();
    if (options.policy == RouterOptions().policy) options.policy = "round_robin";
    if (options.health.interval_ms == RouterOptions().health.interval_ms) options.health.interval_ms = 10'000;
    options.health.startup_interval_ms = 20;
    options.metrics_interval_ms = 50;
    options.retry.initial_backoff_ms = 1;
    auto started = Router::start(std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    router_ = *std::move(started);
    wait(
        [&] { return get("/workers").body.find("\"unknown\"") == std::string::npos && ready() >= replicas; });
  }
  std::size_t ready() {
    const std::string body = get("/readiness").body;
    return static_cast<std::size_t>(std::atoi(body.substr(body.find("healthy_workers") + 17).c_str()));
  }
  template <class Condition>
  void wait(Condition condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(condition()) << "not within 60 seconds";
  }
  http::Client connect() { return *http::Client::connect({.port = router_->port()}); }
  http::Response get(std::string_view target) { return *connect().get(target); }
  http::Response post(std::string body, http::Headers headers = {}) {
    return *connect().request("POST", "/v1/completions", std::move(body), std::move(headers));
  }

  std::unique_ptr<Router> router_;
};

class Keeper {
 public:
  void operator()(std::shared_ptr<http::Exchange> exchange) {
    const std::lock_guard lock(mutex_);
    exchange->on_close([this](http::CloseReason) { ++closed; });
    kept_.push_back(std::move(exchange));
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return kept_.size();
  }
  std::shared_ptr<http::Exchange> at(std::size_t i) {
    const std::lock_guard lock(mutex_);
    return kept_.at(i);
  }
  std::atomic<int> closed = 0;

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<http::Exchange>> kept_;
};

}  // namespace octavo::fleet
