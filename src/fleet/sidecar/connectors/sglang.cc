// sglang: sends the request to both engines at the same time. The engines find each other by the bootstrap
// fields.
#include "fleet/relay/bootstrap.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/two_legs.h"

namespace octavo::fleet {

void run_sglang(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt) {
  auto body = bootstrap_body(legs->body(), prompt,
                             {legs->prefiller().host, legs->options().bootstrap_port, legs->draw()});
  if (!body) return legs->answer(proxy_error(legs->path(), body.error()));
  legs->prefill_meanwhile(*body);
  legs->decode(*std::move(body));
}

}  // namespace octavo::fleet
