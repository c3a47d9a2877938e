// Texts to a model that reads them, without HTTP: the bodies and replies of the server's routes.
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
  // Submits all texts or, when the engine is full, none. The service outlives this.
  static Result<LocalPooling> start(Service& service, PoolingPlan plan, std::size_t job, Arrivals& arrivals);

  // Receives an output of one of the texts.
  void take(Output&& output);
  bool finished() const { return unread_.empty(); }
  void abort() const;

  // Once finished: the reply's body, or the error. Call it once.
  Result<std::string> reply();
  // Why the texts ended: `stop`, `abort` or `error`.
  FinishReason reason() const { return reason_; }

 private:
  LocalPooling(Service& service, PoolingPlan plan);

  Service* service_;
  PoolingPlan plan_;
  Vectors vectors_;
  std::map<RequestId, std::size_t> unread_;  // the text of each
  FinishReason reason_ = FinishReason::stop;
  std::optional<Error> error_;
};

}  // namespace octavo
