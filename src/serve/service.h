// What all routes of the API server share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "media/processor_config.h"
#include "request/engine_client.h"
#include "serve/adapter_names.h"
#include "serve/admission.h"
#include "serve/deadlines.h"
#include "serve/http_metrics.h"
#include "serve/live_feed.h"
#include "serve/live_generations.h"
#include "serve/media_fetch.h"
#include "serve/metrics.h"
#include "serve/openai/generation_fields.h"
#include "serve/openai/response_store.h"
#include "serve/sound_rules.h"
#include "serve/step_trace.h"
#include "serve/text_chunks.h"
#include "serve/tracing.h"
#include "serve/unknown_fields.h"
#include "serve/worker_pool.h"
#include "serve/template_messages.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct ServeOptions {
  openai::RequestRules rules;
  std::vector<TokenId> eos_ids{};                  // end an answer unless ignore_eos; sorted
  std::vector<std::string> api_keys{};             // empty: no key is asked for
  std::optional<media::ProcessorConfig> images{};  // how the model wants them; nothing: it does not see
  std::optional<PromptSound>
      prompt_sound{};                 // how it wants sound in prompts; nothing: it does not hear there
  std::optional<SoundRules> sound{};  // how the model is asked what it hears; nothing: it does not transcribe
  std::map<std::string, std::string, std::less<>>
      text_prompts{};                  // that stand before texts of a kind, by its name
  PoolingRules pooling{};              // of texts that are read, not continued
  bool score_template = false;         // the chat template was given for them: pairs go through it
  MediaSources media_sources{};       // of chats
  std::set<std::string, std::less<>> media_adapters{};  // "image", "video", "audio": chats with such a part that name no
                                                       // adapter have the one of that name
  ContentFormat content_format{};      // contents in chat templates
  std::string root_path{};             // that a proxy leaves in front of paths; "": none
  std::vector<TokenId> tool_tokens{};  // special tokens of the rules' tool dialect
  std::string version{};
  std::string model_root{};  // shown by /v1/models
  std::string system_fingerprint{};
  std::string response_role = "assistant";
  bool prompt_tokens_details = false;  // usage.prompt_tokens_details.cached_tokens
  bool request_id_headers = false;     // answer with X-Request-Id
  bool tokenizer_info = false;         // /tokenizer_info
  bool dev_mode = false;               // routes for development
  bool sleep_mode = false;             // of these, /sleep
  bool profiles = false;               // /start_profile and /stop_profile,
  StepTraceOptions step_trace{};       // and what they do
  bool change_adapters = false;        // /v1/load_lora_adapter and /v1/unload_lora_adapter
  // The folder of an adapter that is named by it or as models of the hub are; may take as long as a download.
  std::function<Result<std::string>(const std::string&)> find_adapter = [](const std::string& path) {
    return path;
  };
  bool request_metrics = false;        // times of an answer in its reply, and as Server-Timing
  std::shared_ptr<Tracer> tracer{};    // null: no spans
  bool log_requests = false;
  std::optional<int> max_log_len{};  // bytes of a prompt in the log; nothing: all
  // Of the request that tells tenants apart, in place of keys and addresses; "": none. It must come from a
  // gateway: whoever sends it is believed.
  std::string client_header{};
  bool isolate_prefix_cache = false;                         // clients share no cached prefixes
  std::uint64_t body_bytes_max = 64 << 20;                   // of a compressed body, when it is not
  bool page = true;                                          // a web page at `/`
  int intake_threads = 2;                                    // parse, render, tokenise
  int delivery_threads = 2;                                  // detokenise, write
  int fetch_threads = 8;                                     // wait for what stands at addresses
  std::size_t fetch_queue_max = 256;                         // beyond: 503
  std::size_t response_store_bytes = std::size_t{64} << 20;  // of /v1/responses; beyond: the oldest go
  std::size_t intake_queue_max = 1024;                       // beyond: 503

  // Admission: what runs and what waits. A client may have as much running as there is room for, and half of
  // the queue; half of the memory.
  int max_num_seqs = 128;                                  // answers that run at a time
  int max_num_queued_reqs = 4096;                          // answers that wait; beyond: 429
  std::int64_t request_bytes_max = std::int64_t{4} << 30;  // see Price::bytes; beyond: 429

  Price budget() const { return {.answers = max_num_seqs + max_num_queued_reqs, .bytes = request_bytes_max}; }
  Price client_max() const {
    return {.answers = max_num_seqs + (max_num_queued_reqs + 1) / 2, .bytes = request_bytes_max / 2};
  }
};

// The parts outlive the service.
struct Service {
  Service(EngineClient& engine_client, const Tokenizer& text_tokenizer, const ChatTemplate* default_template,
          const ChatTemplate* template_for_tools, ServeOptions serve_options)
      : engine(engine_client),
        tokenizer(text_tokenizer),
        chat_template(default_template),
        tool_template(template_for_tools ? template_for_tools : default_template),
        options(std::move(serve_options)),
        adapters(options.rules.adapters),
        metrics(options.rules.model_names.front(), options.rules.max_model_len),
        live(engine_client, metrics),
        step_trace(engine_client, options.step_trace),
        admission(options.budget(), options.client_max()),
        responses(options.response_store_bytes),
        intake(options.intake_threads, options.intake_queue_max),
        delivery(options.delivery_threads, 0),
        fetchers(options.fetch_threads, options.fetch_queue_max) {}

  EngineClient& engine;
  const EngineInfo engine_info = engine.info();
  const Tokenizer& tokenizer;
  const ChatTemplate* chat_template;  // nullptr: the model has none
  const ChatTemplate* tool_template;  // for requests with tools
  const ServeOptions options;
  const std::shared_ptr<AdapterNames> adapters;
  Metrics metrics;
  HttpMetrics http;
  LiveFeed live;
  StepTrace step_trace;
  Admission admission;
  LiveGenerations generations;
  const std::int64_t started_at =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();  // seconds since 1970
  UnknownFields unknown_fields;
  // From now on requests may name it.
  void offer_adapter(AdapterCard card) const {
    if (card.parent.empty()) card.parent = options.rules.model_names.front();
    card.created_at =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    adapters->remove(card.name);
    adapters->add(card);
  }

  Deadlines deadlines;
  openai::ResponseStore responses;
  WorkerPool intake;
  WorkerPool delivery;
  WorkerPool fetchers;
};

}  // namespace octavo
