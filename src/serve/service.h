// What all routes of the API server share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "request/engine_client.h"
#include "serve/grammar_compiler.h"
#include "serve/metrics.h"
#include "serve/openai/generation_fields.h"
#include "serve/worker_pool.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct ServeOptions {
  openai::RequestRules rules;
  std::vector<TokenId> eos_ids{};       // end an answer unless ignore_eos; sorted
  std::vector<std::string> api_keys{};  // empty: no key is asked for
  std::vector<TokenId> tool_tokens{};   // special tokens of the rules' tool dialect
  std::string version{};
  std::string model_root{};  // shown by /v1/models
  std::string system_fingerprint{};
  bool prompt_tokens_details = false;  // usage.prompt_tokens_details.cached_tokens
  bool request_id_headers = false;     // echo X-Request-Id
  bool log_requests = false;
  int intake_threads = 2;               // parse, render, tokenise
  int delivery_threads = 1;             // detokenise, write
  int grammar_threads = 1;              // compile what answers must look like
  std::size_t intake_queue_max = 1024;  // beyond: 503
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
        metrics(options.rules.model_names.front(), options.rules.max_model_len),
        intake(options.intake_threads, options.intake_queue_max),
        delivery(options.delivery_threads, 0),
        grammars(text_tokenizer, options.eos_ids),
        compilers(options.grammar_threads, options.intake_queue_max) {}

  EngineClient& engine;
  const Tokenizer& tokenizer;
  const ChatTemplate* chat_template;  // nullptr: the model has none
  const ChatTemplate* tool_template;  // for requests with tools
  const ServeOptions options;
  Metrics metrics;
  std::atomic<int> generations = 0;  // alive, as /load tells
  const std::int64_t started_at =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();  // seconds since 1970
  std::mutex unknown_fields_mutex;
  std::set<std::string> unknown_fields{};  // those already warned of
  WorkerPool intake;
  WorkerPool delivery;
  GrammarCompiler grammars;
  WorkerPool compilers;
};

}  // namespace octavo
