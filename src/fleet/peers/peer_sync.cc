#include "fleet/peers/peer_sync.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/discover/polled_pool.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kTogetherUs = 2'000;    // changes within this time are sent together
constexpr std::int64_t kAllUs = 1'000'000;     // interval between messages with the loads of all workers
constexpr std::int64_t kSilentUs = 5'000'000;  // after this time without a message, a peer's load counts as 0
constexpr int kResolveMs = 10'000;             // interval between resolutions of host names
// maximum number of messages that wait for a slow peer; further messages are dropped
constexpr int kQueuedMax = 1'000;
constexpr int kMessagesAtOnce = 64;  // messages to read from one peer before continuing with the next peer
constexpr std::size_t kAddressesMax = 256;

zmq::socket_t socket_of(zmq::context_t& context, zmq::socket_type type) {
  zmq::socket_t socket(context, type);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, true);
  socket.set(zmq::sockopt::maxmsgsize, kLoadMessageBytesMax);
  return socket;
}

// Wakes a thread that waits in poll(). Thread-safe.
class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) { CHECK(fd_ >= 0, "eventfd: {}", errno); }
  ~Bell() { close(fd_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  int fd() const { return fd_; }
  void ring() { (void)!write(fd_, &kOne, sizeof kOne); }
  void silence() {
    std::uint64_t rung;
    (void)!read(fd_, &rung, sizeof rung);
  }

 private:
  static constexpr std::uint64_t kOne = 1;
  const int fd_;
};

class Peer {
 public:
  // `number` is unique among the peers.
  Peer(zmq::context_t& context, const std::string& address, std::uint64_t number)
      : socket_(socket_of(context, zmq::socket_type::sub)), changes_(context, zmq::socket_type::pair) {
    socket_.set(zmq::sockopt::subscribe, "");
    const std::string monitor = "inproc://peer" + std::to_string(number);
    zmq_socket_monitor(socket_.handle(), monitor.c_str(), ZMQ_EVENT_DISCONNECTED);
    changes_.connect(monitor);
    socket_.connect("tcp://" + address);
  }

  std::array<zmq::pollitem_t, 2> polled() {
    return {{{socket_.handle(), 0, ZMQ_POLLIN, 0}, {changes_.handle(), 0, ZMQ_POLLIN, 0}}};
  }

  bool disconnected() {
    bool ended = false;
    for (zmq::message_t event; changes_.recv(event, zmq::recv_flags::dontwait);) {
      zmq::message_t address;
      if (event.more()) (void)changes_.recv(address);
      ended = true;
    }
    return ended;
  }
  std::optional<zmq::message_t> receive() {
    zmq::message_t message;
    if (!socket_.recv(message, zmq::recv_flags::dontwait)) return std::nullopt;
    return message;
  }

  std::optional<PeerId> id = {};  // nullopt: no message has arrived on this connection
  std::int64_t received_us = 0;

 private:
  zmq::socket_t socket_;
  zmq::socket_t changes_;  // connection events of socket_
};

}  // namespace

struct PeerSync::State {
  Result<> begin(const PeerOptions& options);
  Result<> resolve();
  void run();
  void work();
  void connect();
  void receive(Peer& peer);
  void take(Peer& peer, const zmq::message_t& message);
  void lose(Peer& peer);
  void report(std::int64_t now);
  std::chrono::milliseconds wait(std::int64_t now) const;

  Owner owner;
  const PeerId self = secret_seed();
  zmq::context_t context{1};
  Bell bell;
  std::atomic<bool> stopping = false;

  std::optional<zmq::socket_t> publisher;
  bool untold = false;       // some changes are not sent yet
  std::int64_t reported_us = 0;  // time of the last message to the peers
  std::int64_t reported_all_us = 0;

  std::vector<PolledOptions> names;
  std::mutex mutex;                                // guards `addresses`
  std::vector<std::set<std::string>> addresses;    // in the order of PeerOptions::peers
  std::map<std::string, Peer> peers;               // by address
  std::uint64_t made = 0;
  std::size_t known = 0;  // number of peers in the last call of peers_changed

  std::thread thread;
  std::unique_ptr<Follower> resolving;
};

PeerSync::PeerSync(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<PeerSync>> PeerSync::start(const PeerOptions& options, Owner owner) {
  auto state = std::make_unique<State>();
  state->owner = std::move(owner);
  TRY_VOID(state->begin(options));
  state->thread = std::thread([made = state.get()] { made->run(); });
  if (!state->names.empty())
    state->resolving = std::make_unique<Follower>(
        FollowerOptions{.source = "addresses of routers", .interval_ms = kResolveMs},
        [made = state.get()] { return made->resolve(); });
  return std::unique_ptr<PeerSync>(new PeerSync(std::move(state)));
}

PeerSync::~PeerSync() {
  state_->resolving.reset();
  state_->stopping.store(true);
  state_->bell.ring();
  state_->thread.join();
}

void PeerSync::changed() { state_->bell.ring(); }

Result<> PeerSync::State::begin(const PeerOptions& options) {
  if (options.peers.size() > kAddressesMax)
    return invalid("router-peers", "must have at most {} addresses, got {}", kAddressesMax,
                   options.peers.size());
  for (const std::string& peer : options.peers) {
    auto name = poll_dns(peer, kResolveMs);
    if (!name) return invalid("router-peers", "must be host:port, got {}", quoted_text(peer));
    names.push_back(*std::move(name));
  }
  addresses.resize(names.size());
  context.set(zmq::ctxopt::max_sockets, static_cast<int>(4 * kAddressesMax));
  if (options.endpoint.empty()) return {};
  try {
    publisher = socket_of(context, zmq::socket_type::pub);
    publisher->set(zmq::sockopt::sndhwm, kQueuedMax);
    publisher->bind(options.endpoint);
  } catch (const zmq::error_t& error) {
    return invalid("router-sync", "cannot listen at {}: {}", quoted_text(options.endpoint), error.what());
  }
  return {};
}

// If a name cannot be resolved, its last known addresses stay.
Result<> PeerSync::State::resolve() {
  Result<> outcome;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = names[i].read();
    if (!found) {
      outcome = failure(ErrorCode::io, "{}: {}", names[i].source, found.error().message);
      continue;
    }
    std::set<std::string> resolved;
    for (const Endpoint& endpoint : *found) resolved.insert(endpoint.name);
    const std::lock_guard lock(mutex);
    addresses[i] = std::move(resolved);
  }
  bell.ring();
  return outcome;
}

void PeerSync::State::run() {
  while (!stopping.load()) {
    try {
      work();
    } catch (const zmq::error_t& error) {
      log_warning("other routers: {}", error.what());
      for (auto& [address, peer] : peers) lose(peer);
      peers.clear();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

void PeerSync::State::work() {
  connect();
  std::vector<zmq::pollitem_t> items{{nullptr, bell.fd(), ZMQ_POLLIN, 0}};
  for (auto& [address, peer] : peers) std::ranges::copy(peer.polled(), std::back_inserter(items));
  zmq::poll(items, wait(now_us()));
  if (items.front().revents != 0) {
    bell.silence();
    untold = true;
  }
  for (auto& [address, peer] : peers) receive(peer);
  std::set<PeerId> now_known;
  for (const auto& [address, peer] : peers)
    if (peer.id && *peer.id != self) now_known.insert(*peer.id);
  if (now_known.size() != known) owner.peers_changed(static_cast<int>(now_known.size()));
  known = now_known.size();
  report(now_us());
}

std::chrono::milliseconds PeerSync::State::wait(std::int64_t now) const {
  std::int64_t until = now + kAllUs;
  if (publisher) until = untold ? reported_us + kTogetherUs : reported_all_us + kAllUs;
  return std::chrono::milliseconds((std::max<std::int64_t>(until - now, 0) + 999) / 1000);
}

void PeerSync::State::connect() {
  std::set<std::string> wanted;
  {
    const std::lock_guard lock(mutex);
    for (const auto& of_name : addresses) wanted.insert(of_name.begin(), of_name.end());
  }
  for (auto& [address, peer] : peers)
    if (!wanted.contains(address)) lose(peer);
  std::erase_if(peers, [&](const auto& each) { return !wanted.contains(each.first); });
  for (const std::string& address : wanted)
    if (peers.size() < kAddressesMax && !peers.contains(address))
      peers.try_emplace(address, context, address, ++made);
}

void PeerSync::State::receive(Peer& peer) {
  for (int i = 0; i < kMessagesAtOnce; ++i) {
    const auto message = peer.receive();
    if (!message) break;
    take(peer, *message);
  }
  if (peer.disconnected() || now_us() - peer.received_us > kSilentUs) lose(peer);
}

void PeerSync::State::take(Peer& peer, const zmq::message_t& message) {
  const auto parsed = read_load_message(message.to_string_view());
  if (!parsed) return owner.malformed();
  peer.received_us = now_us();
  if (peer.id != parsed->sender) lose(peer);  // a different router now has this address
  peer.id = parsed->sender;
  if (parsed->sender != self) owner.received(*parsed);
}

void PeerSync::State::lose(Peer& peer) {
  if (peer.id && *peer.id != self) owner.removed(*peer.id);
  peer.id.reset();
}

void PeerSync::State::report(std::int64_t now) {
  if (!publisher) return;
  const bool all = now - reported_all_us >= kAllUs;
  if (!all && (!untold || now - reported_us < kTogetherUs)) return;
  untold = false;
  reported_us = now;
  if (all) reported_all_us = now;
  const LoadMessage message{.sender = self, .all = all, .workers = owner.changed_loads(all)};
  if (!all && message.workers.empty()) return;
  publisher->send(zmq::buffer(write_load_message(message)), zmq::send_flags::dontwait);
}

}  // namespace octavo::fleet
