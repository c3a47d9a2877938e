// Interface of the program that runs batches: a server or a router.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/message.h"

namespace octavo::batches {

// Any thread may call these functions.
class Host {
 public:
  virtual ~Host() = default;

  // Answers the request of a line. If the response has status 429 or 503, LineRunner retries the line.
  virtual void send(const std::shared_ptr<http::Exchange>& exchange) = 0;
  // Returns headers for the requests of lines, in addition to Content-Type.
  virtual http::Headers line_headers() const { return {}; }
  // Returns whether one more line of this owner may run. `running` is the number of running lines of all
  // owners.
  virtual bool has_room(int running, const std::string& owner) const = 0;

  // Returns the tenant of a request, or "" if the host does not distinguish clients.
  virtual std::string tenant_of(const http::Request& request) const = 0;
  // Runs `work` on another thread, because `work` reads a file.
  virtual void post(std::function<void()> work) = 0;
};

using HostPtr = std::shared_ptr<Host>;

// Returns the owner of a tenant's files and batches, or "" if the host does not distinguish clients.
std::string owner_of(std::string_view tenant);
// Returns the value of Request::peer for the lines of an owner's batches.
inline std::string line_peer(std::string_view owner) { return "batch:" + std::string(owner); }

}  // namespace octavo::batches
