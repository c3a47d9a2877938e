// Reads one page, such as /metrics, from all endpoints at regular intervals. Can request a part of the page.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
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
  // Returns the query that requests the necessary part of an endpoint's page; null: always the whole page.
  std::function<std::string(const Endpoint&)> part = {};
};

// Must outlive the AsyncClient that owns `loop`.
class PagePoller {
 public:
  // Called on the loop's thread with the response of the endpoint `polled`, whatever its status, or with the
  // error.
  using Then = std::function<void(const Member& polled, const Result<http::Response>& page)>;

  PagePoller(const Fleet& fleet, http::ClientLoop& loop, PollOptions options, Then then)
      : fleet_(fleet), loop_(loop), options_(std::move(options)), then_(std::move(then)) {}
  void start();
  // Requests the whole page of this endpoint from now on, because a part of the page did not contain the
  // needed values. Returns false if the whole page was already requested. Must be called on the loop's
  // thread.
  bool read_whole(EndpointId endpoint);

 private:
  // The page of an endpoint. The same HTTP call is repeated at each tick, because making a new call object
  // would cost more.
  struct Polled {
    Member member;
    std::weak_ptr<http::Call> call = {};
    http::Response page = {};
    bool running = true;
    bool outdated = false;  // the call requests a part of the page, but the whole page is needed
  };

  void tick();
  void begin(const Member& member);
  void end(Polled& polled, const Result<>& result);
  bool is_polled(const Member& member) const { return !options_.at_node || !member.endpoint->node.empty(); }
  std::string take_body();
  void return_body(std::string body);

  const Fleet& fleet_;
  http::ClientLoop& loop_;
  const PollOptions options_;
  const Then then_;
  std::unordered_map<EndpointId, std::unique_ptr<Polled>> polled_;
  std::unordered_set<EndpointId> whole_;  // endpoints whose whole page is requested
  // Buffers of earlier pages, reused because allocating them for each page would be slow.
  std::vector<std::string> bodies_;
};

}  // namespace octavo::fleet
