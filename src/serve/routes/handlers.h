// The handlers of all routes. Handlers that read a body (Post) run on the intake threads. All other
// handlers run on the event loop and must not block.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
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

// rest: for routes that match longer paths, the path after the route's path; otherwise "".
using Get = http::Response (*)(Service&, std::string_view rest);
// If the handler returns an error, the error becomes the response.
using Post = Result<> (*)(const ServicePtr&, const ExchangePtr&);

using Stream = void (*)(const ServicePtr&, const ExchangePtr&);

http::Response health(Service&, std::string_view);
http::Response version(Service&, std::string_view);
http::Response load(Service&, std::string_view);
http::Response metrics(Service&, std::string_view);
http::Response models(Service&, std::string_view);
http::Response model(Service&, std::string_view name);
http::Response server_info(Service&, std::string_view);
void live(const ServicePtr&, const ExchangePtr&);
Result<> reset_prefix_cache(const ServicePtr&, const ExchangePtr&);

http::Response api_document(Service&, std::string_view);

Result<> sleep(const ServicePtr&, const ExchangePtr&);
Result<> wake_up(const ServicePtr&, const ExchangePtr&);
http::Response is_sleeping(Service&, std::string_view);
http::Response unread_cost(Service&, std::string_view id);

Result<> pause(const ServicePtr&, const ExchangePtr&);
Result<> resume(const ServicePtr&, const ExchangePtr&);
http::Response is_paused(Service&, std::string_view);

Result<> collective_rpc(const ServicePtr&, const ExchangePtr&);
Result<> update_weights_from_disk(const ServicePtr&, const ExchangePtr&);

Result<> init_weight_transfer(const ServicePtr&, const ExchangePtr&);
Result<> start_weight_update(const ServicePtr&, const ExchangePtr&);
Result<> update_weights(const ServicePtr&, const ExchangePtr&);
Result<> finish_weight_update(const ServicePtr&, const ExchangePtr&);
Result<> shutdown_weight_transfer(const ServicePtr&, const ExchangePtr&);
Result<> update_weight_version(const ServicePtr&, const ExchangePtr&);
http::Response weight_info(Service&, std::string_view);
// Reads a field with a version of weights. Returns nullopt if the field is absent.
Result<std::optional<std::string>> read_weight_version(openai::Fields& fields, std::string_view name);

Result<> scale_engines(const ServicePtr&, const ExchangePtr&);
http::Response is_scaling(Service&, std::string_view);
Result<> is_scaling_too(const ServicePtr&, const ExchangePtr&);  // vLLM's clients send POST

Result<> start_profile(const ServicePtr&, const ExchangePtr&);
Result<> stop_profile(const ServicePtr&, const ExchangePtr&);

Result<> chat_completions(const ServicePtr&, const ExchangePtr&);
Result<> completions(const ServicePtr&, const ExchangePtr&);
// Reads the header X-Request-Timeout, in seconds, which overrides the body's timeout.
Result<> read_timeout(const http::Request& request, openai::GenerationRequest& generation);
// Sets the name of the session. The order is: fields of the body, the header,
// GenerationRequest::derived_session.
Result<> read_session_header(const http::Request& request, openai::GenerationRequest& generation);
// Reads the headers X-Request-Timeout, X-Request-Id and the session. The body's request id overrides
// X-Request-Id.
Result<> read_headers(const http::Request& request, openai::GenerationRequest& generation);
// Fetches the URLs in `media`, then calls `go_on`: on a fetching thread if there is a URL to fetch or a video
// to decode, otherwise directly. The number of fetching threads also limits the memory for media. `go_on`
// must own the media. If `go_on` returns an error, the error becomes the response.
Result<> with_media(const ServicePtr&, const ExchangePtr&, std::vector<openai::ChatPrompt::Media>& media,
                    http::Response (*error_response)(const Error&), std::function<Result<>()> go_on);
// Fetches the media of a conversation, renders and tokenises it, and passes the token ids to `go_on`.
Result<> with_chat_tokens(const ServicePtr&, const ExchangePtr&, openai::ChatPrompt prompt,
                          bool add_special_tokens, std::size_t bytes_max,
                          http::Response (*error_response)(const Error&),
                          std::function<void(std::vector<TokenId>)> go_on);
// Reads vLLM's header X-data-parallel-rank, which selects an engine by index.
Result<std::optional<int>> chosen_engine(const http::Request& request);
// Starts the generation on the engine that the request's headers select.
Result<> start(const ServicePtr&, const ExchangePtr&, GenerationPlan plan);
// Logs the request's unknown fields (each name once), and submits the plan to the engine with the request's
// tenant and trace context.
std::weak_ptr<Generation> generate(const ServicePtr&, const ExchangePtr&, GenerationPlan plan);

// Priority of background requests. With priority scheduling, all other requests run first.
inline constexpr std::int64_t kBackgroundPriority = std::numeric_limits<std::int64_t>::max();

// Returns the tenant: the header AccessOptions::client_header if the request has it, otherwise the API key if
// the server requires one, otherwise the client's address. For requests of this process (batches):
// Request::peer.
std::string client_of(const Service& service, const http::Request& request);
RequestAccount account_of(const Service& service, const http::Request& request);

// Returns the owner of the request's sessions: the tenant, or "anonymous" if clients have no keys.
std::string session_owner(const Service& service, const http::Request& request);
// all methods of /v1/sessions
Result<> sessions(const ServicePtr&, const ExchangePtr&);

Result<> transcriptions(const ServicePtr&, const ExchangePtr&);
Result<> translations(const ServicePtr&, const ExchangePtr&);

Result<> inference(const ServicePtr&, const ExchangePtr&);
Result<> render_chat(const ServicePtr&, const ExchangePtr&);
Result<> render_completion(const ServicePtr&, const ExchangePtr&);
Result<> render_messages(const ServicePtr&, const ExchangePtr&);
Result<> render_cohere_chat(const ServicePtr&, const ExchangePtr&);
Result<> render_response(const ServicePtr&, const ExchangePtr&);

Result<> generative_scoring(const ServicePtr&, const ExchangePtr&);

Result<> chat_batch(const ServicePtr&, const ExchangePtr&);

// If the body contains no ids, abort_requests() returns an error, and abort_all_requests() aborts all
// requests.
Result<> abort_requests(const ServicePtr&, const ExchangePtr&);
Result<> abort_all_requests(const ServicePtr&, const ExchangePtr&);

Result<> embeddings(const ServicePtr&, const ExchangePtr&);
Result<> embed_by_type(const ServicePtr&, const ExchangePtr&);
Result<> pooling(const ServicePtr&, const ExchangePtr&);
Result<> classify(const ServicePtr&, const ExchangePtr&);
Result<> score(const ServicePtr&, const ExchangePtr&);
Result<> rerank(const ServicePtr&, const ExchangePtr&);

Result<> invocations(const ServicePtr&, const ExchangePtr&);

Result<> create_response(const ServicePtr&, const ExchangePtr&);
Result<> compact_response(const ServicePtr&, const ExchangePtr&);
Result<> count_response_tokens(const ServicePtr&, const ExchangePtr&);
// all methods of the other paths below /v1/responses
Result<> stored_responses(const ServicePtr&, const ExchangePtr&);

// all methods of /v1/conversations
Result<> conversations(const ServicePtr&, const ExchangePtr&);

Result<> messages(const ServicePtr&, const ExchangePtr&);
Result<> count_tokens(const ServicePtr&, const ExchangePtr&);

Result<> cohere_chat(const ServicePtr&, const ExchangePtr&);

// all methods of /v1/files, /v1/batches and /v1/messages/batches
Result<> batches(const ServicePtr&, const ExchangePtr&);

Result<> ollama_chat(const ServicePtr&, const ExchangePtr&);
Result<> ollama_generate(const ServicePtr&, const ExchangePtr&);
Result<> ollama_embed(const ServicePtr&, const ExchangePtr&);
Result<> ollama_embeddings(const ServicePtr&, const ExchangePtr&);
Result<> ollama_show(const ServicePtr&, const ExchangePtr&);
Result<> ollama_pull(const ServicePtr&, const ExchangePtr&);
Result<> ollama_change(const ServicePtr&, const ExchangePtr&);  // refuses routes that change models, such as
                                                                // /api/create
http::Response ollama_delete(Service&, std::string_view);
http::Response ollama_tags(Service&, std::string_view);
http::Response ollama_ps(Service&, std::string_view);
http::Response ollama_version(Service&, std::string_view);

Result<> load_adapter(const ServicePtr&, const ExchangePtr&);
Result<> unload_adapter(const ServicePtr&, const ExchangePtr&);

// SageMaker's POST /adapters and DELETE /adapters/NAME
Result<> register_adapter(const ServicePtr&, const ExchangePtr&);
Result<> unregister_adapter(const ServicePtr&, const ExchangePtr&);

Result<> tokenize(const ServicePtr&, const ExchangePtr&);
Result<> detokenize(const ServicePtr&, const ExchangePtr&);
http::Response tokenizer_info(Service&, std::string_view);

}  // namespace octavo::routes
