#include "fleet/observe/cache_collector.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/observe/cache_events.h"
#include "fleet/observe/cache_message.h"
#include "fleet/observe/cache_stream.h"
#include "fleet/view/address_list.h"

namespace octavo::fleet {
namespace {

constexpr std::chrono::milliseconds kTick{100};

// Returns the endpoint's name in a topic: "10.0.0.1:8000" for "kv@10.0.0.1:8000@model". Returns "" if the
// topic contains no name.
std::string_view publisher(std::string_view topic) {
  const std::size_t begin = std::min(topic.find('@'), topic.size() - 1) + 1;
  return topic.substr(begin, topic.find('@', begin) - begin);
}

// Adds brackets around an IPv6 address: "[fd00::1]:8000" for "fd00::1:8000". vLLM's topic templates omit
// the brackets.
std::string with_brackets(std::string_view name) {
  const std::size_t colon = std::min(name.rfind(':'), name.size());
  return fmt::format("[{}]{}", name.substr(0, colon), name.substr(colon));
}

// Returns the endpoint that sent the message; null if it is unknown. The endpoint is the one that the topic
// names, unless its address has several ranks and the batch reports a rank. Ranks of one server may all
// publish with the topic of the server's first port. Separate servers on one host publish with their own
// ports, each as rank 0. Rank numbers may continue over several hosts (vLLM's external load balancing).
const Member* publishing(const FleetView& view, std::string_view name, std::optional<std::int64_t> rank) {
  const Member* named = view.find(name);
  if (!named) named = view.find(with_brackets(name));
  std::vector<const Member*> ranks;
  for (const Member& member : view.members)
    if (named ? ip_of(member.endpoint->name) == ip_of(named->endpoint->name)
              : address_names(name, ip_of(member.endpoint->name)))
      ranks.push_back(&member);
  if (ranks.empty() || (named && (named->endpoint->rank != 0 || rank.value_or(0) == 0))) return named;
  const auto count = static_cast<std::int64_t>(ranks.size());
  const auto of_rank = std::ranges::find(ranks, std::max<std::int64_t>(rank.value_or(0), 0) % count,
                                         [](const Member* member) { return member->endpoint->rank; });
  if (of_rank != ranks.end()) return *of_rank;
  return named ? named : ranks.front();
}

// Replaces a host name by its address: "tcp://127.0.0.1:5557" for "tcp://localhost:5557". ZeroMQ binds only
// to addresses and interfaces.
std::string with_address(const std::string& endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  const std::size_t colon = endpoint.rfind(':');
  if (!endpoint.starts_with(kTcp) || colon < kTcp.size()) return endpoint;
  const std::string host = endpoint.substr(kTcp.size(), colon - kTcp.size());
  addrinfo hints{};
  hints.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return endpoint;
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr, text.data(),
            text.size());
  freeaddrinfo(found);
  return fmt::format("{}{}{}", kTcp, text.data(), endpoint.substr(colon));
}

}  // namespace

struct CacheCollector::State {
  State(const Fleet& f, CacheSubscriber::Deliver d) : fleet(f), deliver(std::move(d)) {}
  void run();
  void read();

  const Fleet& fleet;
  const CacheSubscriber::Deliver deliver;
  zmq::context_t context{1};
  zmq::socket_t socket{context, zmq::socket_type::sub};
  std::map<EndpointId, CacheStream> streams;
  std::atomic<bool> stopping = false;
  std::thread thread;
};

CacheCollector::CacheCollector(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<CacheCollector>> CacheCollector::start(const std::string& endpoint,
                                                              const std::string& topic, const Fleet& fleet,
                                                              CacheSubscriber::Deliver deliver,
                                                              std::string_view field) {
  auto state = std::make_unique<State>(fleet, std::move(deliver));
  try {
    state->socket.set(zmq::sockopt::linger, 0);
    state->socket.set(zmq::sockopt::maxmsgsize, kCacheMessageBytesMax);
    state->socket.set(zmq::sockopt::subscribe, topic);
    state->socket.bind(with_address(endpoint));
  } catch (const zmq::error_t& error) {
    return invalid(field, "cannot listen at {}: {}", quoted_text(endpoint), error.what());
  }
  state->thread = std::thread([made = state.get()] { made->run(); });
  return std::unique_ptr<CacheCollector>(new CacheCollector(std::move(state)));
}

CacheCollector::~CacheCollector() {
  state_->stopping.store(true);
  state_->thread.join();
}

void CacheCollector::State::run() {
  while (!stopping.load()) {
    try {
      zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
      zmq::poll(&item, 1, kTick);
      read();
    } catch (const zmq::error_t& error) {
      log_warning("KV cache events: {}", error.what());
      std::this_thread::sleep_for(kTick);
    }
  }
}

void CacheCollector::State::read() {
  const CacheEvent lost{.kind = CacheEvent::Kind::lost};
  const auto view = fleet.view();
  std::erase_if(streams, [&](const auto& stream) { return !view->find(stream.first); });
  bool any = true;
  while (any && !stopping.load()) {
    const auto message = receive_cache_message(socket, any);
    if (!message) continue;
    const auto batch = read_cache_batch(message->batch);
    const auto rank = batch ? batch->rank : std::nullopt;
    const Member* member = publishing(*view, publisher(message->topic), rank);
    if (!member) continue;  // the endpoint is not in the fleet yet, so its blocks are not needed
    const auto step = streams.try_emplace(member->id, false).first->second.live(message->number);
    if (step == CacheStream::Step::pass) continue;
    if (step == CacheStream::Step::clear_and_apply) deliver(*member, {&lost, 1}, {});
    if (batch)
      deliver(*member, batch->events, {});
    else
      log_warning("{}: {}", member->endpoint->url, batch.error().message);
  }
}

}  // namespace octavo::fleet
