// The account of one request. If a response ends early, or has no place for a cost, it does not report its
// cost. The bill then reads the cost from the worker (accounts/unread_costs.h) before it charges the tenant.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fleet/route/route_metrics.h"
#include "http/async_client.h"
#include "request/answer_cost.h"

namespace octavo::fleet {

// Must be used on the loop's thread. It may outlive the request's Forwarding.
class Bill : public std::enable_shared_from_this<Bill> {
 public:
  // Values of the request, known when its response to the client has ended.
  struct Ended {
    std::string id, tenant, path, model;
    int status = 0;
    double seconds = 0;
    AnswerCost cost;        // what the responses have reported
    bool reported = false;  // whether a response has reported a cost
  };

  Bill(RouteMetrics& metrics, http::ClientLoop& loop) : metrics_(metrics), loop_(loop) {}

  // Sends `request` to a worker until the worker knows the cost, but for at most about three seconds. Stops
  // if the worker is not reachable, or does not have the route because it is another engine.
  void read_cost(http::CallRequest request);
  // Charges the tenant when all costs are read. A request without any cost is not charged.
  void close(Ended ended);

 private:
  struct Reading {
    http::CallRequest request;
    std::size_t tries = 0;
    http::Response head = {};
  };
  void read_later(const std::shared_ptr<Reading>& reading);
  void send(const std::shared_ptr<Reading>& reading);
  void on_reply(const std::shared_ptr<Reading>& reading, const Result<>& result);
  void charge_if_complete();

  RouteMetrics& metrics_;
  http::ClientLoop& loop_;
  int unread_ = 0;  // number of costs that are being read
  AnswerCost read_;
  bool has_read_ = false;
  std::optional<Ended> ended_;
};

}  // namespace octavo::fleet
