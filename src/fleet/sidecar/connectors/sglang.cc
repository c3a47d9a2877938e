// sglang: sends the request to both engines at the same time. The engines find each other by the bootstrap
// fields.
#include "fleet/relay/bootstrap.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/split_request.h"

namespace octavo::fleet {

void run_sglang(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt) {
  auto body = bootstrap_body(split->body(), prompt,
                             {split->prefiller().host, split->options().bootstrap_port, split->draw()});
  if (!body) return split->answer(proxy_error(split->path(), body.error()));
  split->prefill_meanwhile(*body);
  split->decode(*std::move(body));
}

}  // namespace octavo::fleet
