// Asks every endpoint for a page on a fixed tick.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>

#include "fleet/view/fleet_view.h"
#include "http/async_client.h"

namespace octavo::fleet {

struct PollOptions {
  std::string path = {};
  int interval_ms = 50;
  int port = 0;           // 0: the endpoint's own
  bool at_node = false;   // at the address of its machine; where that is not known nobody is asked
  std::shared_ptr<SSL_CTX> tls = {};  // the page is read by https; null: as the endpoint's URL says
  int timeout_ms = 2000;  // an endpoint that has not answered by then has not answered
};

// Must outlive the client whose loop it runs on.
class PagePoller {
 public:
  // Called on the loop's thread with the response of `asked`, of any status, or with the error.
  using Then = std::function<void(const Member& asked, const Result<http::Response>& page)>;

  PagePoller(const Fleet& fleet, http::ClientLoop& loop, PollOptions options, Then then)
      : fleet_(fleet), loop_(loop), options_(std::move(options)), then_(std::move(then)) {}
  void start();

 private:
  void tick();
  void ask(const Member& member);

  const Fleet& fleet_;
  http::ClientLoop& loop_;
  const PollOptions options_;
  const Then then_;
  std::unordered_set<EndpointId> asked_;  // endpoints with a request under way
};

}  // namespace octavo::fleet
