#include "fleet/observe/cache_subscriber.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <xxhash.h>
#include <zmq.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/observe/cache_events.h"
#include "fleet/observe/cache_message.h"
#include "fleet/observe/cache_stream.h"

namespace octavo::fleet {
namespace {

constexpr std::chrono::milliseconds kSubscriberTick{100};
constexpr std::int64_t kReplayUs = 10'000'000;  // a replay has failed if no message arrives for this time
// Pauses between the replays that check for messages before the subscription was active: the first pause,
// which doubles up to the longest one.
constexpr std::int64_t kFirstCheckUs = 100'000;
constexpr std::int64_t kLastCheckUs = 10'000'000;
// messages to read from one endpoint before the subscriber continues with the next endpoint
constexpr int kMessagesAtOnce = 64;
constexpr std::int64_t kPauseUs = 5'000'000;  // pause after ZeroMQ has run out of sockets

zmq::socket_t connected(zmq::context_t& context, zmq::socket_type type, const std::string& endpoint) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::maxmsgsize, kCacheMessageBytesMax);
  socket.connect(endpoint);
  return socket;
}

class Source {
 public:
  // `number` is unique among the sources. `known` is the position up to which another source has provided
  // the events.
  Source(zmq::context_t& context, Member member, std::uint64_t number, const CachePosition& known,
         const CacheSubscriber::Deliver& deliver)
      : context_(context),
        member_(std::move(member)),
        deliver_(deliver),
        stream_(!member_.endpoint->kv_replay_endpoint.empty()),
        live_(context, zmq::socket_type::sub),
        changes_(context, zmq::socket_type::pair) {
    live_.set(zmq::sockopt::linger, 0);
    live_.set(zmq::sockopt::maxmsgsize, kCacheMessageBytesMax);
    live_.set(zmq::sockopt::subscribe, "");
    const std::string address = "inproc://" + std::to_string(number);
    zmq_socket_monitor(live_.handle(), address.c_str(),
                       ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED);
    changes_.connect(address);
    live_.connect(member_.endpoint->kv_events_endpoint);
    if (known.next > 0) {
      stream_.resume(known.next);
      unproven_ = known;
    } else {
      clear();
    }
  }

  const Member& member() const { return member_; }
  std::vector<zmq::pollitem_t> polled() {
    std::vector<zmq::pollitem_t> items{{live_.handle(), 0, ZMQ_POLLIN, 0},
                                       {changes_.handle(), 0, ZMQ_POLLIN, 0}};
    if (replay_) items.push_back({replay_->handle(), 0, ZMQ_POLLIN, 0});
    return items;
  }

  void work() {
    read_changes();
    read_replay();
    read_live();
    if (stream_.replaying() && replay_ && now_us() > replay_until_us_) {
      log_warning("{} does not answer at {}", member_.endpoint->url, member_.endpoint->kv_replay_endpoint);
      end_replay();
      check_at_us_.reset();
    }
    if (check_at_us_ && !stream_.subscribed() && now_us() >= *check_at_us_) {
      check_at_us_.reset();
      stream_.check();
    }
    if (is_connected_) request();
  }

 private:
  void read_changes() {
    zmq::message_t event, address;
    while (changes_.recv(event, zmq::recv_flags::dontwait)) {
      (void)changes_.recv(address);
      std::uint16_t kind = 0;
      if (event.size() < sizeof kind) continue;
      std::memcpy(&kind, event.data(), sizeof kind);
      is_connected_ = kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
      if (!is_connected_) start_over();
    }
  }

  void start_over() {
    stream_.start_over();
    replay_.reset();
    check_at_us_.reset();
    check_pause_us_ = kFirstCheckUs;
    clear();
  }

  void read_live() {
    bool any = true;
    for (int i = 0; i < kMessagesAtOnce && any; ++i)
      if (const auto message = receive_cache_message(live_, any))
        take(stream_.live(message->number), *message);
  }

  void read_replay() {
    bool any = true;
    for (int i = 0; i < kMessagesAtOnce && any && replay_; ++i) {
      const auto message = receive_cache_message(*replay_, any);
      if (!message) continue;
      replay_until_us_ = now_us() + kReplayUs;
      if (message->number == kReplayEnd) {
        end_replay();
      } else {
        take(stream_.replayed(message->number), *message);
      }
    }
  }

  void take(CacheStream::Step step, const CacheMessage& message) {
    if (step == CacheStream::Step::pass) return;
    const CachePosition position{message.number + 1, XXH64(message.batch.data(), message.batch.size(), 0)};
    if (unproven_ && step == CacheStream::Step::apply) {
      // the message is number next - 1, which was replayed to detect a restart
      if (std::exchange(unproven_, {}) == position) return;
      log_info("{} has restarted; its index is cleared and filled again", member_.endpoint->url);
      return start_over();
    }
    if (step != CacheStream::Step::apply) {
      log_warning("KV cache events of {} were lost; its index is cleared and filled again",
                  member_.endpoint->url);
      clear();
    }
    if (step == CacheStream::Step::clear) return replay_.reset();
    const auto batch = read_cache_batch(message.batch);
    if (!batch) log_warning("{}: {}", member_.endpoint->url, batch.error().message);
    deliver_(member_, batch.value_or(CacheBatch()).events, position);
  }

  void end_replay() {
    if (unproven_) return start_over();
    replay_.reset();
    stream_.replay_ended();
    check_at_us_ = now_us() + check_pause_us_;
    check_pause_us_ = std::min(2 * check_pause_us_, kLastCheckUs);
  }

  // Requests a replay. Each replay gets a new socket, so that no messages of an earlier replay arrive.
  void request() {
    const auto from = stream_.request_from();
    if (!from) return;
    replay_ = connected(context_, zmq::socket_type::dealer, member_.endpoint->kv_replay_endpoint);
    const std::uint64_t number = __builtin_bswap64(*from);
    replay_->send(zmq::str_buffer(""), zmq::send_flags::sndmore);
    replay_->send(zmq::buffer(&number, sizeof number));
    replay_until_us_ = now_us() + kReplayUs;
  }

  void clear() {
    unproven_.reset();
    const CacheEvent lost{.kind = CacheEvent::Kind::lost};
    deliver_(member_, {&lost, 1}, {});
  }

  zmq::context_t& context_;
  const Member member_;
  const CacheSubscriber::Deliver& deliver_;
  CacheStream stream_;
  // position from another source, until the replay confirms that the endpoint has not restarted
  std::optional<CachePosition> unproven_;
  zmq::socket_t live_;
  zmq::socket_t changes_;  // connection events of live_
  bool is_connected_ = false;
  std::optional<zmq::socket_t> replay_;
  std::int64_t replay_until_us_ = 0;
  std::optional<std::int64_t> check_at_us_ = {};  // time of the next check, while no live message has arrived
  std::int64_t check_pause_us_ = kFirstCheckUs;
};

bool listened_to(const Member& member) {
  return !member.endpoint->kv_events_endpoint.empty() &&
         member.state.availability != Availability::unprobed &&
         member.state.availability != Availability::starting &&
         member.state.availability != Availability::unhealthy;
}

bool same_sockets(const Endpoint& a, const Endpoint& b) {
  return a.kv_events_endpoint == b.kv_events_endpoint && a.kv_replay_endpoint == b.kv_replay_endpoint;
}

}  // namespace

Result<> check_zmq_endpoint(const std::string& endpoint, std::string_view field) {
  try {
    zmq::context_t context(1);
    connected(context, zmq::socket_type::sub, endpoint);
  } catch (const zmq::error_t& error) {
    return invalid(field, "{} must be an address like \"tcp://host:5557\": {}", quoted_text(endpoint),
                   error.what());
  }
  return {};
}

CacheSubscriber::CacheSubscriber(const Fleet& fleet, Deliver deliver, Known known)
    : fleet_(fleet),
      deliver_(std::move(deliver)),
      known_(std::move(known)),
      thread_([this] { run(); }) {}

CacheSubscriber::~CacheSubscriber() {
  stopping_.store(true);
  thread_.join();
}

void CacheSubscriber::run() {
  zmq::context_t context(1);
  context.set(zmq::ctxopt::max_sockets, static_cast<int>(4 * kEndpointsMax));
  std::map<std::string, Source> sources;  // by endpoint name
  std::vector<zmq::pollitem_t> items;
  std::uint64_t made = 0;
  std::int64_t paused_until_us = 0;
  while (!stopping_.load()) {
    const auto view = fleet_.view();
    std::erase_if(sources, [&](const auto& source) {
      const Member* now = view->find(source.second.member().id);
      return !now || now->endpoint->name != source.first || !listened_to(*now) ||
             !same_sockets(*now->endpoint, *source.second.member().endpoint);
    });
    try {
      for (const Member& member : view->members) {
        if (now_us() <= paused_until_us || !listened_to(member) || sources.contains(member.endpoint->name))
          continue;
        const bool replays = !member.endpoint->kv_replay_endpoint.empty();
        const CachePosition known = known_ && replays ? known_(member) : CachePosition();
        sources.try_emplace(member.endpoint->name, context, member, ++made, known, deliver_);
      }
      items.clear();
      for (auto& [name, source] : sources) std::ranges::copy(source.polled(), std::back_inserter(items));
      zmq::poll(items, kSubscriberTick);
      for (auto& [name, source] : sources) source.work();
    } catch (const zmq::error_t& error) {
      log_warning("KV cache events: {}; retrying in 5 s", error.what());
      sources.clear();
      paused_until_us = now_us() + kPauseUs;
    }
  }
}

}  // namespace octavo::fleet
