#include "fleet/route/batch_host.h"

#include <array>
#include <boost/asio/post.hpp>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/route/forwarding.h"
#include "openai/api_key.h"

namespace octavo::fleet {
namespace {

constexpr int kLinesPerWorker = 16;

class BatchHost final : public batches::Host {
 public:
  BatchHost(const RouteContext& context, http::AsyncClient& client, Tenants& tenants)
      : context_(context), client_(client), tenants_(tenants) {
    for (const auto& tenant : tenants.all()) {
      const std::string owner = batches::owner_of(name_of(*tenant));
      by_peer_[batches::line_peer(owner)] = tenant.get();
    }
  }

  // Takes the tenant's share before the line is sent, so that has_room() counts the line at once.
  void send(const std::shared_ptr<http::Exchange>& exchange) override {
    http::ClientLoop& loop = client_.loop_of(*exchange);
    const std::string& path = exchange->request().path;
    Tenant* tenant = tenant_of(exchange->request().peer);
    const auto admitted = std::make_shared<Tenant::Answer>(
        tenant ? tenant->admit(now_us(), Tenant::Kind::line) : Tenant::Answer());
    if (admitted->retry_after_s > 0) return exchange->respond(proxy_error(path, 429, admitted->message));
    loop.post([&context = context_, &loop, exchange, tenant, admitted] {
      if (!context.queue && !context.admission.admit())
        return exchange->respond(
            proxy_error(exchange->request().path, 429, "the router is at its limit of requests"));
      Forwarding::start(context, loop, exchange, std::move(admitted->share),
                        tenant ? tenant->options().name : "");
    });
  }

  // Lines of a batch are sent with the router's first API key.
  http::Headers line_headers() const override {
    if (context_.options.api_keys.empty()) return {};
    return {{"Authorization", "Bearer " + context_.options.api_keys.front()}};
  }

  // Checks the owner's limits separately, so that a tenant at its limits does not delay batches of other
  // tenants.
  bool has_room(int running, const std::string& owner) const override {
    Tenant* tenant = tenant_of(batches::line_peer(owner));
    if (tenant && !tenant->has_room_for_line(now_us())) return false;
    const auto view = context_.balancer.fleet().view();
    return running < kLinesPerWorker * static_cast<int>(view->members.size());
  }

  std::string tenant_of(const http::Request& request) const override {
    const std::string key = authorization_of(request);
    if (const Tenant* tenant = tenants_.find(key)) return name_of(*tenant);
    return context_.options.api_keys.empty() ? "" : key;
  }

  void post(std::function<void()> work) override { boost::asio::post(context_.readers, std::move(work)); }

 private:
  static std::string name_of(const Tenant& tenant) { return "tenant " + tenant.options().name; }
  // Returns the tenant that made the batch, by the peer of one of its lines. Returns null if no tenant made
  // it.
  Tenant* tenant_of(const std::string& peer) const {
    const auto found = by_peer_.find(peer);
    return found != by_peer_.end() ? found->second : nullptr;
  }

  const RouteContext& context_;
  http::AsyncClient& client_;
  Tenants& tenants_;
  std::map<std::string, Tenant*> by_peer_;
};

}  // namespace

bool names_batches(std::string_view path) {
  constexpr std::array<std::string_view, 3> kRoots{"/v1/batches", "/v1/files", "/v1/messages/batches"};
  for (const std::string_view root : kRoots)
    if (path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/')) return true;
  return false;
}

batches::HostPtr batch_host(const RouteContext& context, http::AsyncClient& client, Tenants& tenants) {
  return std::make_shared<BatchHost>(context, client, tenants);
}

}  // namespace octavo::fleet
