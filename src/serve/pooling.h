// Handles one HTTP request to a pooling model. The reply is sent after the engine's last result.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "http/exchange.h"
#include "request/request.h"
#include "serve/pooling_plan.h"
#include "serve/submission.h"

namespace octavo {

class Pooling final : public OutputReceiver, public std::enable_shared_from_this<Pooling> {
 public:
  // Submits all texts, or none if the server is full. If it returns an error, no text was submitted.
  static Result<> start(std::shared_ptr<Service> service, PoolingPlan plan,
                        std::shared_ptr<http::Exchange> exchange);

 private:
  Pooling(std::shared_ptr<Service> service, PoolingPlan plan, Admission::Ticket ticket,
          std::shared_ptr<http::Exchange> exchange);

  Result<> submit();
  void deliver(std::size_t text, Output&& output) noexcept override;
  void conclude();
  void log_end(FinishReason reason) const;

  const std::shared_ptr<Service> service_;
  PoolingPlan plan_;
  Admission::Ticket ticket_;
  Submission submission_;
  const std::shared_ptr<http::Exchange> exchange_;
  const std::vector<int> lengths_;
  const std::int64_t arrived_us_ = now_us();

  std::mutex mutex_;  // guards all members below
  Vectors vectors_;
  std::size_t unfinished_;
  std::optional<Error> error_;
  AnswerCost cost_;  // complete after the last text
};

}  // namespace octavo
