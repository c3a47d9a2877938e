// The handlers of all routes. Handlers that read a body run on the intake threads. The others run on the
// event loop and must not wait.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/exchange.h"
#include "serve/generation.h"
#include "serve/service.h"

namespace octavo::routes {

using ExchangePtr = std::shared_ptr<http::Exchange>;
using ServicePtr = std::shared_ptr<Service>;

// rest: the path after the route's path; "" unless the route takes one.
using Get = http::Response (*)(Service&, std::string_view rest);
// A returned error becomes the answer.
using Post = Result<> (*)(const ServicePtr&, const ExchangePtr&);

using Stream = void (*)(const ServicePtr&, const ExchangePtr&);

// info.cc
http::Response health(Service&, std::string_view);
http::Response version(Service&, std::string_view);
http::Response load(Service&, std::string_view);
http::Response metrics(Service&, std::string_view);
http::Response models(Service&, std::string_view);
http::Response model(Service&, std::string_view name);
http::Response server_info(Service&, std::string_view);
void live(const ServicePtr&, const ExchangePtr&);
Result<> reset_prefix_cache(const ServicePtr&, const ExchangePtr&);

// openapi.cc
http::Response api_document(Service&, std::string_view);

// sleep.cc
Result<> sleep(const ServicePtr&, const ExchangePtr&);
Result<> wake_up(const ServicePtr&, const ExchangePtr&);
http::Response is_sleeping(Service&, std::string_view);

// pause.cc
Result<> pause(const ServicePtr&, const ExchangePtr&);
Result<> resume(const ServicePtr&, const ExchangePtr&);
http::Response is_paused(Service&, std::string_view);

// weights.cc
Result<> collective_rpc(const ServicePtr&, const ExchangePtr&);
Result<> update_weights_from_disk(const ServicePtr&, const ExchangePtr&);

// weight_updates.cc
Result<> init_weight_transfer(const ServicePtr&, const ExchangePtr&);
Result<> start_weight_update(const ServicePtr&, const ExchangePtr&);
Result<> update_weights(const ServicePtr&, const ExchangePtr&);
Result<> finish_weight_update(const ServicePtr&, const ExchangePtr&);
Result<> shutdown_weight_transfer(const ServicePtr&, const ExchangePtr&);
Result<> update_weight_version(const ServicePtr&, const ExchangePtr&);
http::Response weight_info(Service&, std::string_view);
// Reads a version of weights; nullopt: absent.
Result<std::optional<std::string>> read_weight_version(openai::Fields& fields, std::string_view name);

// elastic.cc
Result<> scale_engines(const ServicePtr&, const ExchangePtr&);
http::Response is_scaling(Service&, std::string_view);
Result<> is_scaling_too(const ServicePtr&, const ExchangePtr&);  // vLLM's clients use POST for it

// profile.cc
Result<> start_profile(const ServicePtr&, const ExchangePtr&);
Result<> stop_profile(const ServicePtr&, const ExchangePtr&);

// generate.cc
Result<> chat_completions(const ServicePtr&, const ExchangePtr&);
Result<> completions(const ServicePtr&, const ExchangePtr&);
// Reads X-Request-Timeout, in seconds. It replaces the body's timeout.
Result<> read_timeout(const http::Request& request, openai::GenerationRequest& generation);
// Reads X-Request-Timeout, and X-Request-Id if the body has no id.
Result<> read_headers(const http::Request& request, openai::GenerationRequest& generation);
// Fetches the URLs in `media`, then calls `go_on`. Without URLs it is called at once, otherwise on a thread
// that may wait; the number of these threads limits the memory. `go_on` must keep the media alive. If it
// returns an error, this is the answer.
Result<> with_media(const ServicePtr&, const ExchangePtr&, std::vector<openai::ChatPrompt::Media>& media,
                    http::Response (*error_response)(const Error&), std::function<Result<>()> go_on);
// Starts the generation on the engine that the request's headers select.
Result<> start(const ServicePtr&, const ExchangePtr&, GenerationPlan plan);
// Logs each ignored field once. Then submits the plan to the engine, with its client and trace.
std::weak_ptr<Generation> generate(const ServicePtr&, const ExchangePtr&, GenerationPlan plan);

// Priority of background requests, which yield to all others if the engine schedules by priority.
inline constexpr std::int64_t kBackgroundPriority = std::numeric_limits<std::int64_t>::max();

// The tenant: the API key if keys are required, otherwise the address.
std::string client_of(const Service& service, const http::Request& request);
RequestAccount account_of(const Service& service, const http::Request& request);

// audio.cc
Result<> transcriptions(const ServicePtr&, const ExchangePtr&);
Result<> translations(const ServicePtr&, const ExchangePtr&);

// inference.cc
Result<> inference(const ServicePtr&, const ExchangePtr&);
Result<> render_chat(const ServicePtr&, const ExchangePtr&);
Result<> render_completion(const ServicePtr&, const ExchangePtr&);
Result<> render_messages(const ServicePtr&, const ExchangePtr&);
Result<> render_response(const ServicePtr&, const ExchangePtr&);

// chat_batch.cc: /v1/chat/completions/batch
Result<> chat_batch(const ServicePtr&, const ExchangePtr&);

// abort.cc: aborts requests by id; the second one aborts all if no ids are given
Result<> abort_requests(const ServicePtr&, const ExchangePtr&);
Result<> abort_all_requests(const ServicePtr&, const ExchangePtr&);

// pooling.cc
Result<> embeddings(const ServicePtr&, const ExchangePtr&);
Result<> embed_by_type(const ServicePtr&, const ExchangePtr&);
Result<> pooling(const ServicePtr&, const ExchangePtr&);
Result<> classify(const ServicePtr&, const ExchangePtr&);
Result<> score(const ServicePtr&, const ExchangePtr&);
Result<> rerank(const ServicePtr&, const ExchangePtr&);

// invocations.cc
Result<> invocations(const ServicePtr&, const ExchangePtr&);

// responses.cc
Result<> create_response(const ServicePtr&, const ExchangePtr&);
Result<> stored_responses(const ServicePtr&, const ExchangePtr&);  // paths below /v1/responses, all methods

// conversations.cc: /v1/conversations, all methods
Result<> conversations(const ServicePtr&, const ExchangePtr&);

// messages.cc
Result<> messages(const ServicePtr&, const ExchangePtr&);
Result<> count_tokens(const ServicePtr&, const ExchangePtr&);

// batches.cc: /v1/files, /v1/batches and /v1/messages/batches, all methods
Result<> batches(const ServicePtr&, const ExchangePtr&);

// ollama.cc
Result<> ollama_chat(const ServicePtr&, const ExchangePtr&);
Result<> ollama_generate(const ServicePtr&, const ExchangePtr&);
Result<> ollama_embed(const ServicePtr&, const ExchangePtr&);
Result<> ollama_embeddings(const ServicePtr&, const ExchangePtr&);
Result<> ollama_show(const ServicePtr&, const ExchangePtr&);
Result<> ollama_pull(const ServicePtr&, const ExchangePtr&);
Result<> ollama_change(const ServicePtr&, const ExchangePtr&);  // refuses /api/create and others
http::Response ollama_delete(Service&, std::string_view);
http::Response ollama_tags(Service&, std::string_view);
http::Response ollama_ps(Service&, std::string_view);
http::Response ollama_version(Service&, std::string_view);

// adapters.cc
Result<> load_adapter(const ServicePtr&, const ExchangePtr&);
Result<> unload_adapter(const ServicePtr&, const ExchangePtr&);

// tokenizer.cc
Result<> tokenize(const ServicePtr&, const ExchangePtr&);
Result<> detokenize(const ServicePtr&, const ExchangePtr&);
http::Response tokenizer_info(Service&, std::string_view);

}  // namespace octavo::routes
