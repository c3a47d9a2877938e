// The one way to an engine. Server, command line, bindings, router and simulator speak this, and do not know
// whether the engine is in this process, in another, or on another host.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "request/engine_stats.h"
#include "request/request.h"

namespace octavo {

class EngineClient {
 public:
  virtual ~EngineClient() = default;

  // Hands the request over; outputs arrive at the sink until each of the n answers has finished. Errors: the
  // queue is full (resource_exhausted), the request can never fit (invalid_argument), the engine is draining
  // or broken (unavailable). After an error the sink is never called.
  virtual Result<RequestId> submit(Request request, std::shared_ptr<OutputSink> sink) = 0;

  // Ends the request with FinishReason::abort by the next step at the latest. Unknown or finished ids are
  // ignored.
  virtual void abort(RequestId id) = 0;

  // Drops every cached prefix that no running request uses.
  virtual void reset_prefix_cache() = 0;

  // A snapshot, safe from any thread at any time.
  virtual EngineStats stats() const = 0;

  // Refuses new requests from now on, and returns when the last one has finished.
  virtual void drain() = 0;
};

}  // namespace octavo
