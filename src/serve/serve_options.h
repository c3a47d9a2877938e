// Settings of a server, grouped by topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "accounts/accounts.h"
#include "media/processor_config.h"
#include "serve/admission.h"
#include "serve/mcp/options.h"
#include "serve/media_fetch.h"
#include "serve/openai/generation_fields.h"
#include "serve/sound_rules.h"
#include "serve/step_trace.h"
#include "serve/template_messages.h"
#include "serve/text_chunks.h"
#include "serve/tracing.h"

namespace octavo {

struct MediaOptions {
  std::optional<media::ProcessorConfig> images{};  // nullopt: the model does not support images
  std::optional<PromptSound> prompt_sound{};       // nullopt: the model does not support audio in prompts
  std::optional<SoundRules> transcription{};       // nullopt: the model does not transcribe
  MediaSources sources{};
  // kinds of media ("image", "video", "audio") for which a LoRA adapter with the kind as its name exists
  std::set<std::string, std::less<>> adapters{};
};

// Limits of running and waiting requests. One client may have max_num_seqs answers plus half of
// max_num_queued_reqs, and may use half of request_bytes_max.
struct AdmissionOptions {
  int max_num_seqs = 128;          // maximum number of running answers
  int max_num_queued_reqs = 4096;  // maximum number of waiting answers; above it, the server returns 429
  // maximum sum of Price::bytes; above it, the server returns 429
  std::int64_t request_bytes_max = std::int64_t{4} << 30;
  // Price::bytes of several models together, with the limits of one model; null: no other model
  std::shared_ptr<SharedBytes> shared_bytes{};

  Price budget() const { return {.answers = max_num_seqs + max_num_queued_reqs, .bytes = request_bytes_max}; }
  Price client_max() const {
    return {.answers = max_num_seqs + (max_num_queued_reqs + 1) / 2, .bytes = request_bytes_max / 2};
  }
};

struct ThreadOptions {
  int intake = 2;                       // threads that parse requests, render templates and tokenise
  int delivery = 2;                     // threads that detokenise and write
  int fetch = 8;                        // threads that fetch media from URLs and decode videos
  // maximum number of waiting intake tasks; above it, the server returns 503
  std::size_t intake_queue_max = 1024;
  // maximum number of waiting fetch tasks; above it, the server returns 503
  std::size_t fetch_queue_max = 256;
};

// Routes and features that a flag enables.
struct ServeFeatures {
  bool prompt_tokens_details = false;  // whether usage includes prompt_tokens_details.cached_tokens
  bool request_id_headers = false;     // whether responses include X-Request-Id
  bool request_metrics = false;  // whether replies and the Server-Timing header include an answer's times
  bool tokenizer_info = false;
  bool dev_mode = false;
  bool sleep_mode = false;  // enables /sleep; only with dev_mode
  bool profiles = false;    // enables /start_profile and /stop_profile
  bool change_adapters = false;
  // enables /v1/sessions/{id}/import, and also exports if KV transfer is off
  bool session_import = false;
  bool page = true;
  bool cohere_thinking = true;      // whether /cohere/v2/chat returns reasoning before tool calls as thinking
  bool sagemaker_sessions = false;  // whether /invocations creates sessions
  int sagemaker_session_s = 1200;   // lifetime of a session in seconds
};

struct AccessOptions {
  std::vector<std::string> api_keys{};  // empty: no key is required
  // Request header that identifies the tenant; "": the API key or the address identifies the tenant. The
  // server trusts the header, so a gateway must set it.
  std::string client_header{};
  bool isolate_prefix_cache = false;  // whether tenants do not share cached prefixes
  mcp::Options mcp{};
};

struct ObserveOptions {
  std::shared_ptr<Tracer> tracer{};  // null: no spans are recorded
  bool phase_spans = false;          // whether each answer also has spans for its phases
  StepTraceOptions step_trace{};
  AccountOptions accounts{};
  bool log_requests = false;
  std::optional<int> max_log_len{};  // maximum bytes of a prompt in the log; nullopt: no limit
};

struct ServedModel {
  std::string root{};  // name of the model as the user gave it; `root` in /v1/models
  std::string path{};
};

struct ServeOptions {
  openai::RequestRules rules;
  MediaOptions media{};
  PoolingRules pooling{};
  AdmissionOptions admission{};
  ThreadOptions threads{};
  ServeFeatures features{};
  AccessOptions access{};
  ObserveOptions observe{};

  std::vector<TokenId> eos_ids{};      // sorted tokens that end an answer, unless ignore_eos is set
  std::vector<TokenId> tool_tokens{};  // special tokens of rules.tool_dialect
  ContentFormat content_format{};      // see template_messages.h
  std::string root_path{};             // path prefix that a proxy does not remove
  std::string version{};
  ServedModel model{};
  std::string system_fingerprint{};
  std::string response_role = "assistant";
  std::int64_t keep_alive_us = 0;  // time without output after which a stream sends a keep-alive; 0: never
  // Returns the folder of an adapter. The argument is a path or a name on the hub; the function may
  // download the adapter.
  std::function<Result<std::string>(const std::string&)> find_adapter = [](const std::string& path) {
    return path;
  };
  std::uint64_t body_bytes_max = 64 << 20;  // maximum size of a request body after decompression
  // memory for the stored responses of /v1/responses; the oldest responses are dropped
  std::size_t response_store_bytes = std::size_t{64} << 20;
};

}  // namespace octavo
