#include "fleet/peers/peer_sync.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <zmq.hpp>

#include "base/testing/eventually.h"
#include "dist/tcp_socket.h"

namespace octavo::fleet {
namespace {

// A port of 127.0.0.1 that no other program gets.
struct Port {
  const std::pair<Socket, int> reserved = reserve_port().value();
  std::string address() const { return "127.0.0.1:" + std::to_string(reserved.second); }
};

// A stand-in for a router: stores the loads that its PeerSync sends and receives.
class Book {
 public:
  Book(const Port& port, std::vector<std::string> peers) {
    sync_ = PeerSync::start({.endpoint = "tcp://" + port.address(), .peers = std::move(peers)},
                            {.changed_loads =
                                 [this](bool all) {
                                   const std::lock_guard lock(mutex_);
                                   auto changes = std::exchange(changed_, {});
                                   return all ? own_ : changes;
                                 },
                             .received =
                                 [this](const LoadMessage& message) {
                                   const std::lock_guard lock(mutex_);
                                   if (message.all) peers_.erase(message.sender);
                                   for (const WorkerLoad& each : message.workers)
                                     peers_[message.sender][each.worker] = each.load;
                                 },
                             .removed =
                                 [this](PeerId peer) {
                                   const std::lock_guard lock(mutex_);
                                   peers_.erase(peer);
                                 },
                             .malformed =
                                 [this] {
                                   const std::lock_guard lock(mutex_);
                                   ++malformed_;
                                 },
                             .peers_changed =
                                 [this](int now) {
                                   const std::lock_guard lock(mutex_);
                                   known_ = now;
                                 }})
                .value();
  }
  void has(const std::string& worker, Load load) {
    {
      const std::lock_guard lock(mutex_);
      own_ = {{worker, load}};
      changed_.push_back({worker, load});
    }
    sync_->changed();
  }
  // Returns the requests at the worker, summed over all peers.
  int requests(const std::string& worker) {
    const std::lock_guard lock(mutex_);
    int sum = 0;
    for (const auto& [peer, loads] : peers_)
      if (const auto known = loads.find(worker); known != loads.end()) sum += known->second.requests;
    return sum;
  }
  int known() {
    const std::lock_guard lock(mutex_);
    return known_;
  }
  int malformed() {
    const std::lock_guard lock(mutex_);
    return malformed_;
  }

 private:
  std::mutex mutex_;
  std::vector<WorkerLoad> own_, changed_;
  std::map<PeerId, std::map<std::string, Load>> peers_;
  int malformed_ = 0, known_ = 0;
  std::unique_ptr<PeerSync> sync_;
};

TEST(PeerSync, EachHearsWhatTheOthersHaveInFlight) {
  const Port ports[3];
  std::vector<std::string> all;
  for (const Port& port : ports) all.push_back(port.address());
  // `all` includes a router's own address, and a router ignores its own messages
  Book a(ports[0], all), b(ports[1], all);
  auto c = std::make_unique<Book>(ports[2], all);
  for (Book* each : {&a, &b, c.get()}) EXPECT_TRUE(eventually([&] { return each->known() == 2; }));
  a.has("w", {.requests = 3});
  c->has("w", {.requests = 4});
  EXPECT_TRUE(eventually([&] { return b.requests("w") == 7; }));
  EXPECT_TRUE(eventually([&] { return a.requests("w") == 4; }));
  a.has("w", {});
  EXPECT_TRUE(eventually([&] { return b.requests("w") == 4; }));
  c.reset();
  EXPECT_TRUE(eventually([&] { return b.requests("w") == 0 && b.known() == 1; })) << "gone with its connection";
}

TEST(PeerSync, OneThatComesLaterIsToldEverything) {
  const Port first, second;
  Book a(first, {second.address()});
  a.has("w", {.requests = 3});
  Book b(second, {first.address()});
  EXPECT_TRUE(eventually([&] { return b.requests("w") == 3; }));
}

TEST(PeerSync, WhatIsNoMessageIsCounted) {
  zmq::context_t context(1);
  zmq::socket_t stranger(context, zmq::socket_type::pub);
  stranger.set(zmq::sockopt::linger, 0);
  stranger.bind("tcp://127.0.0.1:*");
  const std::string endpoint = stranger.get(zmq::sockopt::last_endpoint);
  const Port port;
  Book book(port, {endpoint.substr(6)});
  EXPECT_TRUE(eventually([&] {
    stranger.send(zmq::str_buffer("what is this?"));
    return book.malformed() > 0;
  }));
  const LoadMessage good{.sender = 1, .all = true, .workers = {{"w", {.requests = 2}}}};
  stranger.send(zmq::buffer(write_load_message(good)));
  EXPECT_TRUE(eventually([&] { return book.requests("w") == 2; }));
  EXPECT_TRUE(eventually([&] { return book.requests("w") == 0; })) << "it has said nothing for too long";
}

TEST(PeerSync, WrongAddressesAreTold) {
  const auto field = [](const PeerOptions& options) { return PeerSync::start(options, {}).error().field; };
  EXPECT_EQ(field({.endpoint = "nonsense"}), "router-sync");
  EXPECT_EQ(field({.endpoint = "tcp://127.0.0.1:*", .peers = {"no port"}}), "router-peers");
}

}  // namespace
}  // namespace octavo::fleet
