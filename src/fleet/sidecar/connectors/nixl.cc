// nixlv2: the prefill engine keeps the prompt's KV blocks and responds with their location
// (kv_transfer_params). The decode engine fetches the blocks (vLLM's NixlConnector, also in `octavo
// serve`).
#include "base/log.h"
#include "fleet/relay/cached_usage.h"
#include "fleet/relay/disaggregation.h"
#include "fleet/relay/refusal.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/split_request.h"

namespace octavo::fleet {

void run_nixl(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt) {
  split->prefill(prefill_body(std::move(prompt)), false, [split](const Result<http::Response>& reply) {
    if (reply && reply->status / 100 == 4 && !worth_a_retry(reply->status))
      // The request caused the error, so the decode engine would refuse it, too.
      return split->answer(*reply);
    const std::optional<std::string> params =
        reply && reply->status == 200 ? kv_transfer_params(reply->body) : std::nullopt;
    if (!params) {
      log_warning("{} did not prefill ({}), so the decode engine computes the prompt",
                  split->prefiller().text(),
                  reply ? fmt::format("status {}", reply->status) : reply.error().message);
      return split->decode_alone();
    }
    split->decode(decode_body(split->body(), *params), cached_tokens(reply->body));
  });
}

}  // namespace octavo::fleet
