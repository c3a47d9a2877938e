// The state of the API server. All routes share it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "request/engine_client.h"
#include "serve/adapter_names.h"
#include "serve/admission.h"
#include "serve/batch_api.h"
#include "serve/deadlines.h"
#include "serve/live_feed.h"
#include "serve/live_generations.h"
#include "serve/mcp/threads.h"
#include "serve/media_store.h"
#include "serve/metrics.h"
#include "serve/openai/response_store.h"
#include "serve/sagemaker_sessions.h"
#include "serve/serve_options.h"
#include "serve/served_weights.h"
#include "serve/step_trace.h"
#include "serve/unknown_fields.h"
#include "serve/worker_pool.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// Threads for slow work: fetching media from URLs, decoding videos, and waiting for MCP servers.
struct Fetchers {
  WorkerPool pool;
  mcp::Threads mcp;
  MediaStore media{};

  void stop() {
    pool.stop();
    mcp.stop();
  }
};

// Live views of the engine: the web page, and traces of steps.
struct Views {
  LiveFeed live;
  StepTrace steps;
};

// Chat templates; null if the model has no chat template.
struct Templates {
  const ChatTemplate* plain;
  const ChatTemplate* with_tools;  // for requests with tools
};

// The arguments that are references or pointers must outlive the service.
struct Service {
  Service(EngineClient& engine_client, const Tokenizer& text_tokenizer, const ChatTemplate* default_template,
          const ChatTemplate* template_for_tools, ServeOptions serve_options)
      : engine(engine_client),
        tokenizer(text_tokenizer),
        templates{.plain = default_template,
                  .with_tools = template_for_tools ? template_for_tools : default_template},
        options(std::move(serve_options)),
        adapters(options.rules.adapters),
        weights(options.model.path),
        metrics(options.rules.model_names.front(), options.rules.max_model_len, options.observe.accounts),
        views{.live{engine_client, metrics}, .steps{engine_client, options.observe.step_trace}},
        admission(options.admission.budget(), options.admission.client_max(), options.admission.shared_bytes),
        responses(options.response_store_bytes),
        intake(options.threads.intake, options.threads.intake_queue_max),
        delivery(options.threads.delivery, 0),
        sessions(options.features.sagemaker_sessions
                     ? std::make_unique<SageMakerSessions>(options.features.sagemaker_session_s)
                     : nullptr),
        fetchers{.pool{options.threads.fetch, options.threads.fetch_queue_max},
                 .mcp = mcp::Threads(options.access.mcp)} {}

  EngineClient& engine;
  const EngineInfo engine_info = engine.info();
  const Tokenizer& tokenizer;
  const Templates templates;
  const ServeOptions options;
  const std::shared_ptr<AdapterNames> adapters;
  ServedWeights weights;
  Metrics metrics;
  Views views;
  Admission admission;
  LiveGenerations generations;
  const std::int64_t started_at =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();  // seconds since 1970
  UnknownFields unknown_fields;
  // Adds the adapter to the names that requests may use.
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
  const std::unique_ptr<SageMakerSessions> sessions;  // null without --sagemaker-sessions
  Fetchers fetchers;
  // routes for files and batches; set before the server accepts requests; null without --batch-dir
  std::unique_ptr<BatchApi> batches;
};

}  // namespace octavo
