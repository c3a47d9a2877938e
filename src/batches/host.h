// The program that runs batches: a server or a router.
#pragma once

#include <functional>
#include <memory>
#include <string>

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
  // Whether one more line may run. running: number of running lines.
  virtual bool has_room(int running) const = 0;

  // Identifies the client that sends a request; "": clients are not distinguished.
  virtual std::string tenant_of(const http::Request& request) const = 0;
  // Runs work that reads a file, on another thread.
  virtual void post(std::function<void()> work) = 0;
};

using HostPtr = std::shared_ptr<Host>;

}  // namespace octavo::batches
