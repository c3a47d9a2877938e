#include <algorithm>
#include <utility>

#include "batches/service.h"
#include "serve/routes/handlers.h"
#include "serve/routes/routes.h"

namespace octavo::batches {
namespace {

class ServeHost final : public Host {
 public:
  explicit ServeHost(const std::shared_ptr<Service>& service)
      : service_(service), most_(std::max(1, service->options.admission.max_num_seqs * 3 / 4)) {}

  void send(const std::shared_ptr<http::Exchange>& exchange) override {
    static const ApiKeys kNoKeys({});
    if (const auto service = service_.lock()) return route(service, kNoKeys, exchange);
    exchange->respond({.status = 503, .body = R"({"error": {"message": "the server is stopping"}})"});
  }

  // No new line starts while lines and clients together use three quarters of the engine's sequences (most_).
  bool has_room(int running, const std::string&) const override {
    const auto service = service_.lock();
    return service && running < most_ && service->admission.used().answers < most_;
  }

  // Without API keys and a tenant header, all clients are one tenant (""), because an address may change.
  std::string tenant_of(const http::Request& request) const override {
    const auto service = service_.lock();
    if (!service) return "";
    const AccessOptions& access = service->options.access;
    const bool known = !access.api_keys.empty() || !access.client_header.empty();
    return known ? routes::client_of(*service, request) : "";
  }

  void post(std::function<void()> work) override {
    if (const auto service = service_.lock()) service->delivery.post(std::move(work));
  }

 private:
  const std::weak_ptr<Service> service_;  // The service owns this object, so a shared_ptr would form a cycle.
  const int most_;
};

}  // namespace

HostPtr serve_host(const std::shared_ptr<Service>& service) { return std::make_shared<ServeHost>(service); }

}  // namespace octavo::batches
