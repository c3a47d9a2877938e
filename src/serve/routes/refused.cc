#include "serve/routes/refused.h"

namespace octavo::routes {
namespace {

constexpr std::string_view kWeights =
    "POST /update_weights_from_disk, or /collective_rpc with reload_weights, replaces weights with those of "
    "a folder";
constexpr std::string_view kDerender = "use /detokenize for token ids, and /v1/chat/completions for chats";
constexpr std::string_view kCohere =
    "use /v1/chat/completions, which finds the reasoning and the tool calls of Cohere's models";
constexpr std::string_view kDecisions = "use /v1/chat/completions with response_format json_schema";
constexpr std::string_view kFaults =
    "the server restarts failed engines without a request; /health shows the state";
constexpr std::string_view kNoMediaCache =
    "images and sounds have no separate cache; use /reset_prefix_cache";

constexpr RefusedRoute kRefused[] = {
    {"/cohere/v2/chat", kCohere},
    {"/cohere/v2/chat/render", kCohere},
    {"/docs", "the server has no documentation page; /openapi.json describes the routes"},
    {"/fault_tolerance/apply", kFaults},
    {"/fault_tolerance/status", kFaults},
    {"/finish_weight_update", kWeights},
    {"/generative_scoring", "use /v1/completions with max_tokens 1, logprobs 0 and logprob_token_ids"},
    {"/get_world_size", "the server cannot receive weights over NCCL"},
    {"/init_weight_transfer_engine", kWeights},
    {"/kv_event_sources", "the flag --kv-events-config sets the addresses of KV events"},
    {"/release_kv_cache_memory", "use POST /sleep?level=1, which frees the KV cache"},
    {"/reset_encoder_cache", kNoMediaCache},
    {"/reset_mm_cache", kNoMediaCache},
    {"/shutdown_weight_transfer_engine", kWeights},
    {"/start_draft_weight_update", kWeights},
    {"/start_weight_update", kWeights},
    {"/update_weight_version", kWeights},
    {"/update_weights", kWeights},
    {"/v1/chat/completions/derender", kDerender},
    {"/v1/completions/derender", kDerender},
    {"/v1/decisions", kDecisions},
    {"/v1/realtime", "WebSockets are not supported; use /v1/audio/transcriptions with stream"},
    {"/v1/systemone", kDecisions},
    {"/weight_checker", kWeights},
    {"/weight_info", kWeights},
};

}  // namespace

std::span<const RefusedRoute> refused_routes() { return kRefused; }

}  // namespace octavo::routes
