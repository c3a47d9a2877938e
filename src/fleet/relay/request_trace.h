// Trace spans of one request in the router or the sidecar. Each call to an engine has a child span.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "http/message.h"
#include "trace/tracer.h"

namespace octavo::fleet {

class RequestTrace {
 public:
  struct Call {
    std::string id = {};  // span id of the call; "": not recorded
    std::int64_t begun_us = 0;
  };

  // If `tracer` is null, nothing is recorded, and calls have the client's traceparent. `name` is the name
  // of the request's span.
  RequestTrace(std::shared_ptr<Tracer> tracer, std::string name, const http::Request& request);

  // Begins the span of a call, and writes its traceparent into the call's headers.
  Call begin(http::Headers& headers) const;
  // Ends the span of a call. `status` is the HTTP status; 0: no response.
  void end(const Call& call, std::string name, const std::string& url, int status) const;
  // Ends the span of the request. `model` is "" if it is unknown.
  void end(int status, const std::string& model = {}) const;

 private:
  const std::shared_ptr<Tracer> tracer_;  // null: nothing is recorded
  const std::string name_, method_, path_;
  const std::int64_t begun_us_;
  TraceContext context_ = {};
  const std::string id_;
};

}  // namespace octavo::fleet
