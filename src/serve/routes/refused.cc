#include "serve/routes/refused.h"

namespace octavo::routes {
namespace {

constexpr std::string_view kDerender =
    "token ids become text by /detokenize, and chats by /v1/chat/completions";
constexpr std::string_view kDecisions = "use /v1/chat/completions with response_format json_schema";
constexpr std::string_view kFaults =
    "the server restarts failed engines without a request; /health shows the state";
constexpr std::string_view kNoMediaCache =
    "images and sounds have no separate cache; use /reset_prefix_cache";

constexpr RefusedRoute kRefused[] = {
    {"/docs", "the server has no documentation page; /openapi.json describes the routes"},
    {"/fault_tolerance/apply", kFaults},
    {"/fault_tolerance/status", kFaults},
    {"/get_world_size", "weights are sent as safetensors and not by NCCL, so no client joins the ranks"},
    {"/kv_event_sources", "the flag --kv-events-config names the addresses of KV events"},
    {"/release_kv_cache_memory", "POST /sleep?level=1 frees the KV cache"},
    {"/reset_encoder_cache", kNoMediaCache},
    {"/reset_mm_cache", kNoMediaCache},
    {"/start_draft_weight_update", "the weights of draft models do not change while serving"},
    {"/v1/chat/completions/derender", kDerender},
    {"/v1/completions/derender", kDerender},
    {"/v1/decisions", kDecisions},
    {"/v1/realtime", "WebSockets are not supported; use /v1/audio/transcriptions with stream"},
    {"/v1/systemone", kDecisions},
    {"/weight_checker", "weights have no checksums; /weight_info names their version"},
};

}  // namespace

std::span<const RefusedRoute> refused_routes() { return kRefused; }

}  // namespace octavo::routes
