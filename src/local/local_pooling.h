// Texts for a pooling model in this process, without HTTP. Bodies and responses are those of the server's
// routes.
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
  // Submits all texts, or none if the engine is full. The service must outlive this object.
  static Result<LocalPooling> start(Service& service, PoolingPlan plan, std::size_t job, Arrivals& arrivals);

  void take(Output&& output);
  bool finished() const { return unread_.empty(); }
  void abort() const;

  // Returns the body of the response, or the error. Called once, when finished() is true.
  Result<std::string> reply();
  // Returns the reason why the texts ended: `stop`, `abort` or `error`.
  FinishReason reason() const { return reason_; }

 private:
  LocalPooling(Service& service, PoolingPlan plan);

  Service* service_;
  PoolingPlan plan_;
  Vectors vectors_;
  std::map<RequestId, std::size_t> unread_;  // index of each text without a result
  FinishReason reason_ = FinishReason::stop;
  std::optional<Error> error_;
};

}  // namespace octavo
