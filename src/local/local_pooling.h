// Sends pooling requests to an engine in this process, without HTTP. Request bodies and responses are those
// of the server.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "local/local_generation.h"
#include "serve/pooling_plan.h"

namespace octavo {

class LocalPooling {
 public:
  // Submits all texts, or none if the engine's queue is full. The service must outlive this object.
  static Result<LocalPooling> start(Service& service, PoolingPlan plan, std::size_t job, Arrivals& arrivals);

  void take(Output&& output);
  bool finished() const { return unread_.empty(); }
  void abort() const;

  // Returns the body of the response. Call it once, when finished() returns true.
  Result<std::string> reply();
  // Returns why the request ended: `stop`, `abort` or `error`.
  FinishReason reason() const { return reason_; }

 private:
  LocalPooling(Service& service, PoolingPlan plan);

  Service* service_;
  PoolingPlan plan_;
  Vectors vectors_;
  // index of the text of each request whose result is missing
  std::map<RequestId, std::size_t> unread_;
  FinishReason reason_ = FinishReason::stop;
  std::optional<Error> error_;
};

}  // namespace octavo
