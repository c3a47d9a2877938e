// Reads a page of every endpoint at fixed intervals.
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
  int port = 0;          // 0: the endpoint's own port
  bool at_node = false;  // read from the address of the endpoint's machine; endpoints without a known
                         // machine are skipped
  std::shared_ptr<SSL_CTX> tls = {};  // context for https; null: use the scheme of the endpoint's URL
  int timeout_ms = 2000;              // limit on the time for an answer
};

// Must outlive the client of its loop.
class PagePoller {
 public:
  // Called on the loop's thread with the response of `asked` (of any status), or with the error.
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
  std::unordered_set<EndpointId> asked_;  // endpoints with a running request
};

}  // namespace octavo::fleet
