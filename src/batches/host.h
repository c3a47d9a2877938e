// The program that runs batches: a server or a router.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/message.h"

namespace octavo::batches {

// Safe from any thread.
class Host {
 public:
  virtual ~Host() = default;

  // Answers the request of a line. 429 or 503: the line is tried again.
  virtual void send(const std::shared_ptr<http::Exchange>& exchange) = 0;
  // Header fields of a line's request, besides Content-Type.
  virtual http::Headers line_headers() const { return {}; }
  // Whether one more line of this owner may run. running: number of running lines of all owners.
  virtual bool has_room(int running, const std::string& owner) const = 0;

  // Identifies the client that sends a request; "": clients are not distinguished.
  virtual std::string tenant_of(const http::Request& request) const = 0;
  // Runs work that reads a file, on another thread.
  virtual void post(std::function<void()> work) = 0;
};

using HostPtr = std::shared_ptr<Host>;

// The owner of the files and batches of a tenant; "": clients are not distinguished.
std::string owner_of(std::string_view tenant);
// Request::peer of the lines of an owner's batches.
inline std::string line_peer(std::string_view owner) { return "batch:" + std::string(owner); }

}  // namespace octavo::batches
