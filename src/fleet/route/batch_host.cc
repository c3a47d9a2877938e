#include "fleet/route/batch_host.h"

#include <array>
#include <boost/asio/post.hpp>
#include <utility>

#include "fleet/relay/proxy_error.h"
#include "fleet/route/forwarding.h"
#include "openai/api_key.h"

namespace octavo::fleet {
namespace {

constexpr int kLinesPerWorker = 16;

class BatchHost final : public batches::Host {
 public:
  BatchHost(const RouteContext& context, http::AsyncClient& client, Tenants& tenants)
      : context_(context), client_(client), tenants_(tenants) {}

  void send(const std::shared_ptr<http::Exchange>& exchange) override {
    http::ClientLoop& loop = client_.loop_of(*exchange);
    loop.post([&context = context_, &loop, exchange] {
      if (!context.queue && !context.admission.admit())
        return exchange->respond(proxy_error(exchange->request().path, 429, "the router is full"));
      Forwarding::start(context, loop, exchange, {}, "");
    });
  }

  // Workers get the key that the router itself uses.
  http::Headers line_headers() const override {
    if (context_.options.api_keys.empty()) return {};
    return {{"Authorization", "Bearer " + context_.options.api_keys.front()}};
  }

  bool has_room(int running) const override {
    const auto view = context_.balancer.fleet().view();
    return running < kLinesPerWorker * static_cast<int>(view->members.size());
  }

  std::string tenant_of(const http::Request& request) const override {
    const std::string key = authorization_of(request);
    if (const Tenant* tenant = tenants_.find(key)) return "tenant " + tenant->options().name;
    return context_.options.api_keys.empty() ? "" : key;
  }

  void post(std::function<void()> work) override { boost::asio::post(context_.readers, std::move(work)); }

 private:
  const RouteContext& context_;
  http::AsyncClient& client_;
  Tenants& tenants_;
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
