// One HTTP request to a model that reads texts: all of them go to the engine, and when the last vector has
// come the client gets its reply.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/exchange.h"
#include "request/request.h"
#include "serve/pooling_plan.h"

namespace octavo {

class Pooling : public std::enable_shared_from_this<Pooling> {
 public:
  // Submits all texts or, when the server is full, none. Error: the answer, when nothing was begun.
  static Result<> start(std::shared_ptr<Service> service, PoolingPlan plan,
                        std::shared_ptr<http::Exchange> exchange);

 private:
  class Sink;

  Pooling(std::shared_ptr<Service> service, PoolingPlan plan, Admission::Ticket ticket,
          std::shared_ptr<http::Exchange> exchange);

  Result<> submit();
  void cancel() noexcept;
  void deliver(std::size_t text, Output&& output) noexcept;  // on the engine's thread
  void conclude();

  const std::shared_ptr<Service> service_;
  PoolingPlan plan_;
  Admission::Ticket ticket_;
  const std::shared_ptr<http::Exchange> exchange_;
  const std::vector<int> lengths_;  // tokens of each text

  std::mutex mutex_;  // guards all below
  std::vector<RequestId> ids_;
  Vectors vectors_;
  std::size_t unfinished_;
  std::optional<Error> error_;  // the first
  bool cancelled_ = false;
};

}  // namespace octavo
