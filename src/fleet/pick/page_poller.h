// Reads one page, such as /metrics, from all endpoints at regular intervals.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "fleet/view/fleet_view.h"
#include "http/async_client.h"

namespace octavo::fleet {

struct PollOptions {
  std::string path = {};
  int interval_ms = 50;
  int port = 0;  // 0: the endpoint's port
  // read the page at the address of the endpoint's machine; skip endpoints whose machine is unknown
  bool at_node = false;
  std::shared_ptr<SSL_CTX> tls = {};  // null: use the scheme of the endpoint's URL
  int timeout_ms = 2000;
};

// Must outlive the AsyncClient that owns `loop`.
class PagePoller {
 public:
  // Called on the loop's thread with the response of the endpoint `asked`, whatever its status, or with the
  // error.
  using Then = std::function<void(const Member& asked, const Result<http::Response>& page)>;

  PagePoller(const Fleet& fleet, http::ClientLoop& loop, PollOptions options, Then then)
      : fleet_(fleet), loop_(loop), options_(std::move(options)), then_(std::move(then)) {}
  void start();

 private:
  void tick();
  void ask(const Member& member);
  std::string take_body();
  void return_body(std::string body);

  const Fleet& fleet_;
  http::ClientLoop& loop_;
  const PollOptions options_;
  const Then then_;
  std::unordered_set<EndpointId> asked_;
  // Buffers of earlier pages, reused because allocating them for each page would be slow.
  std::vector<std::string> bodies_;
};

}  // namespace octavo::fleet
