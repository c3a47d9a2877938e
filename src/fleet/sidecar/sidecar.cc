#include "fleet/sidecar/sidecar.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <vector>

#include "base/hash.h"
#include "base/out_of_memory.h"
#include "base/quoted_text.h"
#include "base/random.h"
#include "fleet/relay/disaggregation.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/relay/start_server.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/split_request.h"
#include "openai/errors.h"

namespace octavo::fleet {
namespace {

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> items;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view item = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

Result<http::Address> address_of(std::string_view host_port, std::string_view field) {
  auto address = http::parse_base_url(fmt::format("http://{}", host_port));
  if (!address) return invalid(field, "must be host:port, got {}", quoted_text(host_port));
  return address;
}

}  // namespace

struct Sidecar::State {
  explicit State(SidecarOptions o)
      : options(std::move(o)),
        connector(*find_connector(options.connector)),
        client(
            std::make_unique<http::AsyncClient>(http::AsyncClientOptions{.threads = options.http.threads})) {}
  ~State() {
    // Stops new requests and running calls before the members that they use are destroyed.
    server.reset();
    readers.join();
    client.reset();
  }

  void handle(std::shared_ptr<http::Exchange> exchange);
  void begin(http::ClientLoop& loop, const std::shared_ptr<SplitRequest>& split,
             std::optional<boost::json::object> prompt);
  Result<std::optional<http::Address>> prefiller(const http::Request& request, std::uint64_t draw) const;

  const SidecarOptions options;
  const Connector& connector;
  std::vector<std::string> allowed;  // in the form of Address::text()
  const std::uint64_t seed = secret_seed();
  std::atomic<std::uint64_t> draws = 0;
  std::unique_ptr<http::AsyncClient> client;
  boost::asio::thread_pool readers{1};  // reads and decodes bodies outside of the event loops
  std::unique_ptr<http::Server> server;
};

// Returns nullopt if the request names no prefill engine.
Result<std::optional<http::Address>> Sidecar::State::prefiller(const http::Request& request,
                                                               std::uint64_t draw) const {
  constexpr std::string_view kHeader = "x-prefiller-host-port";
  const std::vector<std::string_view> named = split(request.headers.find(kHeader).value_or(""));
  if (named.empty()) return std::nullopt;
  TRY(auto address, address_of(named[options.sample_prefillers ? draw % named.size() : 0], kHeader));
  return address;
}

void Sidecar::State::handle(std::shared_ptr<http::Exchange> exchange) {
  const http::Request& request = exchange->request();
  const std::uint64_t draw = random_bits(seed, 0, ++draws);
  auto with = prefiller(request, draw);
  if (!with) return exchange->respond(openai::error_response(with.error()));
  if (*with && options.only_allowed && std::ranges::find(allowed, (*with)->text()) == allowed.end())
    return exchange->respond(
        openai::error_response(403, fmt::format("{} is not in --allowed-prefillers", (*with)->text())));
  const bool alone = !*with || request.method != "POST";
  http::ClientLoop& loop = client->loop_of(*exchange);
  const auto split_of = [this, &loop, with = *std::move(with), draw](std::shared_ptr<http::Exchange> from) {
    return std::make_shared<SplitRequest>(options, loop, std::move(from), with, draw);
  };
  if (alone) return begin(loop, split_of(std::move(exchange)), std::nullopt);
  boost::asio::post(readers, [this, &loop, split_of, exchange = std::move(exchange)] {
    const auto begun = within_memory([&]() -> Result<> {
      if (auto refusal = exchange->decode_body(options.http.body_bytes_max)) {
        exchange->respond(*std::move(refusal));
        return {};
      }
      const auto split = split_of(exchange);
      begin(loop, split, prefill_request(split->path(), split->body()));
      return {};
    });
    if (!begun)
      exchange->respond(proxy_error(exchange->request().path, 503,
                                    "the sidecar does not have enough memory for this request"));
  });
}

// `prompt` is nullopt if the decode engine does all the work.
void Sidecar::State::begin(http::ClientLoop& loop, const std::shared_ptr<SplitRequest>& split,
                           std::optional<boost::json::object> prompt) {
  loop.post([split, prompt = std::move(prompt), run = connector.run]() mutable {
    split->watch_client();
    prompt ? run(split, *std::move(prompt)) : split->decode_alone();
  });
}

Result<std::unique_ptr<Sidecar>> Sidecar::start(SidecarOptions options) {
  if (!find_connector(options.connector))
    return invalid("kv-connector", "the connector {} does not exist", quoted_text(options.connector));
  if (const auto decoder = http::parse_base_url(options.decoder_url); !decoder)
    return invalid("decoder-url", "{}", decoder.error().message);
  if (!options.allowed_prefillers.empty() && !options.only_allowed)
    return invalid("allowed-prefillers", "needs --enable-ssrf-protection");
  auto state = std::make_unique<State>(std::move(options));
  for (const std::string& host_port : state->options.allowed_prefillers) {
    TRY(const auto address, address_of(host_port, "allowed-prefillers"));
    state->allowed.push_back(address.text());
  }
  http::ServerOptions http = state->options.http;
  http.refusal = [](int status, const std::string& message) {
    return openai::error_response(status, message);
  };
  const auto handle = [state = state.get()](std::shared_ptr<http::Exchange> exchange) {
    state->handle(std::move(exchange));
  };
  TRY(state->server, start_server(std::move(http), handle, *state->client));
  return std::unique_ptr<Sidecar>(new Sidecar(std::move(state)));
}

Sidecar::Sidecar(std::unique_ptr<State> state) : state_(std::move(state)) {}
Sidecar::~Sidecar() = default;

std::uint16_t Sidecar::port() const { return state_->server->port(); }
std::string Sidecar::address() const { return state_->server->address(); }
void Sidecar::stop(int grace_ms) { state_->server->stop(grace_ms); }

}  // namespace octavo::fleet
