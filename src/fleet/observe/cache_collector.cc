#include "fleet/observe/cache_collector.h"

#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/observe/cache_events.h"
#include "fleet/observe/cache_message.h"
#include "fleet/observe/cache_stream.h"

namespace octavo::fleet {
namespace {

constexpr std::chrono::milliseconds kTick{100};

// "10.0.0.1:8000" of "kv@10.0.0.1:8000@model"; "": the topic has no such part.
std::string_view publisher(std::string_view topic) {
  const std::size_t begin = std::min(topic.find('@'), topic.size() - 1) + 1;
  return topic.substr(begin, topic.find('@', begin) - begin);
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
    state->socket.bind(endpoint);
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
  const CacheEvent cleared{.kind = CacheEvent::Kind::cleared};
  const auto view = fleet.view();
  std::erase_if(streams, [&](const auto& stream) { return !view->find(stream.first); });
  bool any = true;
  while (any && !stopping.load()) {
    const auto message = receive_cache_message(socket, any);
    const Member* member = message ? view->find(publisher(message->topic)) : nullptr;
    if (!member) continue;  // nobody's, or not there yet: what it holds is learnt from what it tells next
    const auto step = streams.try_emplace(member->id, false).first->second.live(message->number);
    if (step == CacheStream::Step::pass) continue;
    if (step == CacheStream::Step::clear_and_apply) deliver(*member, {&cleared, 1}, {});
    const auto events = read_cache_events(message->batch);
    if (events)
      deliver(*member, *events, {});
    else
      log_warning("{}: {}", member->endpoint->url, events.error().message);
  }
}

}  // namespace octavo::fleet
