// mooncake: sends the request to both engines at the same time. The engines find each other by the field
// transfer_id, and the decode request names the prefill engine (vLLM's MooncakeConnector).
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/exact_json.h"
#include "base/log.h"
#include "fleet/relay/disaggregation.h"
#include "fleet/relay/json_body.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/split_request.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// Returns the rank and the engine id of a random entry of {"rank": {"engine_id": ..}, ..}.
std::optional<std::pair<std::string, std::string>> rank_and_engine(std::string_view page,
                                                                   std::uint64_t draw) {
  const std::optional<json::object> ranks = json_object(page);
  if (!ranks || ranks->empty()) return std::nullopt;
  const auto& [rank, engine] = *(ranks->begin() + static_cast<std::ptrdiff_t>(draw % ranks->size()));
  const json::object* params = engine.if_object();
  const json::value* id = params ? params->if_contains("engine_id") : nullptr;
  if (!id || !id->is_string()) return std::nullopt;
  return std::pair(std::string(rank), std::string(id->get_string()));
}

void run_both(const std::shared_ptr<SplitRequest>& split, json::object prompt, const std::string& rank,
              const std::string& engine) {
  const std::string id = fmt::format("xfer-{:016x}", split->draw());
  const http::Address bootstrap{split->prefiller().host,
                                static_cast<std::uint16_t>(split->options().bootstrap_port)};
  prompt["kv_transfer_params"] = {
      {"do_remote_decode", true}, {"do_remote_prefill", false}, {"transfer_id", id}};
  http::Headers to_rank;
  to_rank.add("X-data-parallel-rank", rank);
  split->prefill_meanwhile(exact_json_text(prompt), std::move(to_rank));
  split->decode(decode_body(
      split->body(), json::serialize(json::object{{"do_remote_decode", false},
                                                  {"do_remote_prefill", true},
                                                  {"transfer_id", id},
                                                  {"remote_bootstrap_addr", "http://" + bootstrap.text()},
                                                  {"remote_engine_id", engine}})));
}

}  // namespace

void run_mooncake(const std::shared_ptr<SplitRequest>& split, json::object prompt) {
  split->call_prefiller(
      split->options().bootstrap_port, "/query",
      [split, prompt = std::move(prompt)](const Result<http::Response>& reply) {
        const auto found =
            reply && reply->status == 200 ? rank_and_engine(reply->body, split->draw()) : std::nullopt;
        if (found) return run_both(split, prompt, found->first, found->second);
        log_warning("{} lists no engine at /query, so the decode engine computes the prompt",
                    split->prefiller().text());
        split->decode_alone();
      });
}

}  // namespace octavo::fleet
