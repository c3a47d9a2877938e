#include "events/kv_event_publisher.h"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>
#include <zmq.hpp>

#include "base/rank_endpoint.h"

namespace octavo {
namespace {

constexpr std::size_t kEventsMax = 1024;
constexpr std::size_t kNamesMax = 65'536;
constexpr std::uint64_t kEnd = ~std::uint64_t{0};  // A replay ends with the sequence number -1.
constexpr std::chrono::milliseconds kStopCheck{100};

std::array<std::uint8_t, 8> big_endian(std::uint64_t number) {
  return std::bit_cast<std::array<std::uint8_t, 8>>(__builtin_bswap64(number));
}

// Returns whether the reply needs the topic before each number. All socket types except REQ get the topic.
bool takes_topic(zmq::message_t& request) {
  const char* socket_type = zmq_msg_gets(request.handle(), "Socket-Type");
  return socket_type == nullptr || std::string_view(socket_type) != "REQ";
}

std::vector<int> windows(const KvCache& cache) {
  std::vector<int> all;
  for (const CacheGroup& group : cache.groups) all.push_back(group.window);
  return all;
}

}  // namespace

struct KvEventPublisher::Sockets {
  zmq::context_t context{1};
  zmq::socket_t publish{context, zmq::socket_type::pub};
  zmq::socket_t replay{context, zmq::socket_type::router};
  std::atomic<bool> stopping = false;
};

KvEventPublisher::KvEventPublisher(const KvEventOptions& options, const KvCache& cache, int rank)
    : options_(options),
      log_(cache.pool.total(), cache.pool.block_size()),
      batch_(cache.pool.block_size(), windows(cache)),
      rank_(rank),
      sockets_(std::make_unique<Sockets>()) {}

Result<std::unique_ptr<KvEventPublisher>> KvEventPublisher::start(const KvEventOptions& options,
                                                                  const KvCache& cache, int rank) {
  std::unique_ptr<KvEventPublisher> publisher(new KvEventPublisher(options, cache, rank));
  Sockets& s = *publisher->sockets_;
  const auto open = [](zmq::socket_t& socket, const std::string& endpoint, bool bind) {
    bind ? socket.bind(bind_address(endpoint)) : socket.connect(endpoint);
    return socket.get(zmq::sockopt::last_endpoint);
  };
  const std::string endpoint = rank_endpoint(options.endpoint, rank);
  const std::string replay = rank_endpoint(options.replay_endpoint, rank);
  publisher->bound_ = binds(endpoint);
  try {
    s.publish.set(zmq::sockopt::sndhwm, options.hwm);
    s.publish.set(zmq::sockopt::linger, 0);
    s.replay.set(zmq::sockopt::linger, 0);
    publisher->endpoint_ = open(s.publish, endpoint, publisher->bound_);
  } catch (const zmq::error_t& error) {
    return invalid("kv_events_config", "endpoint {}: {}", endpoint, error.what());
  }
  try {
    if (!replay.empty()) publisher->replay_endpoint_ = open(s.replay, replay, true);
  } catch (const zmq::error_t& error) {
    return invalid("kv_events_config", "replay_endpoint {}: {}", replay, error.what());
  }
  publisher->publishing_ = std::thread([p = publisher.get()] { p->publish(); });
  if (!replay.empty()) publisher->answering_ = std::thread([p = publisher.get()] { p->answer_replays(); });
  return publisher;
}

KvEventPublisher::~KvEventPublisher() {
  log_.close();
  sockets_->stopping.store(true);
  if (publishing_.joinable()) publishing_.join();
  if (answering_.joinable()) answering_.join();
}

void KvEventPublisher::name(const Hash128& extra, KvContentNames names) {
  const std::lock_guard lock(names_mutex_);
  if (!names_.try_emplace(extra, std::move(names)).second) return;
  named_.push_back(extra);
  if (named_.size() <= kNamesMax) return;
  names_.erase(named_.front());
  named_.pop_front();
}

void KvEventPublisher::publish() {
  const auto add = [&](const KvEvent& event, std::span<const std::int32_t> tokens) {
    const auto found = names_.find(event.extra);
    batch_.add(event, tokens, found == names_.end() ? nullptr : &found->second);
  };
  for (std::uint64_t number = 0; log_.wait(); ++number) {
    {
      const std::lock_guard lock(names_mutex_);
      log_.take(kEventsMax, add);
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::string batch = batch_.finish(std::chrono::duration<double>(now).count(), rank_);
    const auto bytes = big_endian(number);
    zmq::message_t message(batch);
    // The batch is kept before it is sent, so that a replay contains every batch that a subscriber has
    // received.
    {
      const std::lock_guard lock(mutex_);
      kept_.push_back({number, std::move(batch)});
      if (kept_.size() > static_cast<std::size_t>(options_.buffer_steps)) kept_.pop_front();
    }
    // A subscriber that is too slow loses messages, and detects the loss by a gap in the sequence numbers.
    zmq::socket_t& socket = sockets_->publish;
    socket.send(zmq::buffer(options_.topic), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(bytes), zmq::send_flags::sndmore);
    socket.send(message, zmq::send_flags::none);
  }
}

void KvEventPublisher::answer_replays() {
  zmq::socket_t& socket = sockets_->replay;
  socket.set(zmq::sockopt::sndtimeo, static_cast<int>(kStopCheck.count()));
  const auto answer = [&](zmq::message_t& client, bool with_topic, const Kept& kept) {
    const auto bytes = big_endian(kept.number);
    socket.send(zmq::buffer(client.data(), client.size()), zmq::send_flags::sndmore);
    socket.send(zmq::str_buffer(""), zmq::send_flags::sndmore);
    if (with_topic)
      socket.send(zmq::buffer(kept.number == kEnd ? std::string_view() : std::string_view(options_.topic)), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(bytes), zmq::send_flags::sndmore);
    socket.send(zmq::buffer(kept.batch));
  };
  zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
  while (!sockets_->stopping.load()) {
    if (zmq::poll(&item, 1, kStopCheck) == 0) continue;
    zmq::message_t client, request;
    (void)socket.recv(client);
    for (bool more = client.more(); more; more = request.more()) (void)socket.recv(request);
    if (request.size() != sizeof(std::uint64_t)) continue;
    std::uint64_t first;
    std::memcpy(&first, request.data(), sizeof first);
    first = __builtin_bswap64(first);
    const bool with_topic = takes_topic(request);
    // Copies one batch at a time under the lock, so that publishing does not wait for a slow client.
    for (std::uint64_t next = first;;) {
      Kept found{kEnd, {}};
      {
        const std::lock_guard lock(mutex_);
        if (!kept_.empty() && kept_.back().number >= next) {
          const std::uint64_t oldest = kept_.front().number;
          found = kept_[static_cast<std::size_t>(std::max(next, oldest) - oldest)];
        }
      }
      answer(client, with_topic, found);
      if (found.number == kEnd) break;
      next = found.number + 1;
    }
  }
}

}  // namespace octavo
