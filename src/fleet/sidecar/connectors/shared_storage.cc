// shared-storage: both engines use the same store of KV blocks, so that each engine finds the prompts that
// the other engine has computed. If the request has cache_hit_threshold, the sidecar tries the decode
// engine first, which refuses if too little of the prompt is stored.
#include "base/exact_json.h"
#include "base/log.h"
#include "fleet/relay/json_body.h"
#include "fleet/relay/refusal.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/split_request.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kThreshold = "cache_hit_threshold";

// Sends the prompt to the prefill engine, and then the whole request to the local engine.
void run_both(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt) {
  if (prompt.contains(kThreshold)) prompt[kThreshold] = 0;
  split->prefill(exact_json_text(prompt), false, [split](const Result<http::Response>& reply) {
    if (reply && reply->status / 100 == 4 && !worth_a_retry(reply->status))
      // The request caused the error, so the decode engine would refuse it, too.
      return split->answer(*reply);
    const bool prefilled = reply && reply->status == 200;
    if (!prefilled)
      log_warning("{} did not prefill ({}), so the decode engine computes the prompt",
                  split->prefiller().text(),
                  reply ? fmt::format("status {}", reply->status) : reply.error().message);
    std::optional<boost::json::object> request = json_object(split->body());
    if (!request || !request->contains(kThreshold)) return split->decode_alone();
    (*request)[kThreshold] = 0;
    split->decode(exact_json_text(*request));
  });
}

}  // namespace

void run_shared_storage(const std::shared_ptr<SplitRequest>& split, boost::json::object prompt) {
  if (!prompt.contains(kThreshold)) return run_both(split, std::move(prompt));
  split->decode_if_cached(
      split->body(),
      [prompt = std::move(prompt)](const std::shared_ptr<SplitRequest>& self) { run_both(self, prompt); });
}

}  // namespace octavo::fleet
