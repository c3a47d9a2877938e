// Tests a server on the event loops of a client, as in a proxy.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "base/testing/scratch_directory.h"
#include "http/async_client.h"
#include "http/client.h"
#include "http/server.h"
#include "http/testing/certificate.h"
#include "http/tls.h"

namespace octavo::http {
namespace {

class SharedLoops : public testing::Test {
 protected:
  ~SharedLoops() override {
    proxy_.reset();
    client_.reset();
  }
  void serve(Handler handler, int threads = 1, TlsOptions tls = {}) {
    upstream_ = Server::start({.tls = tls}, std::move(handler)).value();
    AsyncClientOptions options{.threads = threads};
    if (tls.enabled()) options.tls = client_tls_context({.ca_files = {tls.certfile}}).value();
    client_ = std::make_unique<AsyncClient>(std::move(options));
    tls_ = std::move(tls);
    start_proxy();
  }
  void start_proxy() {
    const auto handle = [this](const std::shared_ptr<Exchange>& e) { relay(e); };
    proxy_ = Server::start({.tls = tls_}, handle, *client_).value();
  }
  void relay(const std::shared_ptr<Exchange>& exchange) {
    ClientLoop& loop = client_->loop_of(*exchange);
    const std::thread::id here = std::this_thread::get_id();
    {
      const std::lock_guard lock(mutex_);
      threads_.insert(here);
    }
    const auto call = loop.call(
        {.address = {"127.0.0.1", upstream_->port(), tls_.enabled()}, .target = exchange->request().path},
        {.head = [=](const Response& head) { exchange->start_stream({.status = head.status}); },
         .body =
             [=, this](std::string_view piece) {
               if (std::this_thread::get_id() != here) ++strayed_;
               exchange->write(piece);
             },
         .end =
             [=](const Result<>& result) {
               if (result) exchange->finish();
             },
         .ready = [=] { return exchange->unsent_bytes() < (64 << 10); }});
    exchange->on_close([&loop, weak = std::weak_ptr(call)](CloseReason) {
      loop.post([weak] {
        if (const auto running = weak.lock()) running->cancel();
      });
    });
  }
  Client connect() {
    ClientOptions options{.port = proxy_->port(), .tls = tls_.enabled()};
    if (tls_.enabled()) options.tls_context = client_tls_context({.ca_files = {tls_.certfile}}).value();
    return Client::connect(options).value();
  }

  TlsOptions tls_;
  std::unique_ptr<Server> upstream_;
  std::unique_ptr<AsyncClient> client_;
  std::unique_ptr<Server> proxy_;
  std::atomic<int> strayed_ = 0;
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

TEST_F(SharedLoops, WhatComesInOnAThreadGoesOutOnIt) {
  serve(
      [](const std::shared_ptr<Exchange>& e) {
        e->start_stream({});
        for (int i = 0; i < 5; ++i) e->write("piece ");
        e->finish();
      },
      2);
  std::vector<Client> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(connect());
  for (int round = 0; round < 3; ++round)
    for (Client& client : clients) EXPECT_EQ(client.get("/")->body, "piece piece piece piece piece ");
  EXPECT_EQ(strayed_, 0);
  EXPECT_EQ(threads_.size(), 2U);
  EXPECT_LE(upstream_->connections(), 2U) << "each loop keeps its connections";
}

TEST_F(SharedLoops, TlsOnBothSides) {
  const ScratchDirectory folder;
  const TlsOptions tls{.certfile = folder.path() / "cert.pem", .keyfile = folder.path() / "key.pem"};
  write_certificate(tls.certfile, tls.keyfile, "server");
  serve(
      [](const std::shared_ptr<Exchange>& e) {
        e->start_stream({});
        for (int i = 0; i < 100; ++i) e->write(std::string(1000, 'x'));
        e->finish();
      },
      1, tls);
  Client first = connect(), second = connect();
  for (Client* client : {&first, &second, &first})
    EXPECT_EQ(client->get("/")->body, std::string(100'000, 'x'));
}

TEST_F(SharedLoops, AClientThatLeavesEndsTheCall) {
  std::promise<CloseReason> closed;
  serve([&](const std::shared_ptr<Exchange>& e) {
    e->on_close([&](CloseReason reason) { closed.set_value(reason); });
    e->start_stream({.body = "first"});
    std::thread([e, left = closed.get_future().share()] { left.wait(); }).detach();
  });
  {
    Client client = connect();
    ASSERT_EQ(client.open("GET", "/")->status, 200);
    ASSERT_EQ(client.read()->value(), "first");
  }
  // A handler thread of the upstream server holds the exchange and waits for the promise, which must
  // outlive it. So the test waits until the upstream server has no connection.
  while (upstream_->connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(SharedLoops, AClientThatDoesNotReadHoldsTheReplicaBack) {
  const std::string large(32 << 20, 'x');
  serve([&](const std::shared_ptr<Exchange>& e) { e->respond({.body = large}); });
  Client slow = connect();
  ASSERT_TRUE(slow.open("GET", "/large"));
  EXPECT_EQ(connect().get("/large")->body.size(), large.size()) << "others are served meanwhile";
  std::size_t seen = 0;
  for (auto piece = slow.read(); piece && *piece; piece = slow.read()) seen += (*piece)->size();
  EXPECT_EQ(seen, large.size());
}

TEST_F(SharedLoops, TheLoopsOutliveTheServer) {
  serve([](const std::shared_ptr<Exchange>& e) {
    if (e->request().path == "/plain") return e->respond({.body = "plain"});
    e->start_stream({.body = "first"});
    std::thread([e] {
      while (e->write("more")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }).detach();
  });
  for (int round = 0; round < 3; ++round) {
    Client client = connect();
    ASSERT_EQ(client.open("GET", "/stream")->status, 200);
    ASSERT_TRUE(client.read());
    proxy_->stop(0);
    auto piece = client.read();
    while (piece && *piece) piece = client.read();
    EXPECT_FALSE(piece) << "a stream that is cut is no complete answer";
    start_proxy();
    EXPECT_EQ(connect().get("/plain")->body, "plain");
  }
}

TEST_F(SharedLoops, AServerThatStopsLetsAnswersEnd) {
  std::promise<void> begun, go_on;
  serve([&](const std::shared_ptr<Exchange>& e) {
    e->start_stream({.body = "first "});
    begun.set_value();
    std::thread([e, ready = go_on.get_future().share()] {
      ready.wait();
      e->write("last");
      e->finish();
    }).detach();
  });
  Client client = connect();
  std::future<Result<Response>> answer = std::async(std::launch::async, [&] { return client.get("/"); });
  begun.get_future().wait();
  std::future<void> stopped = std::async(std::launch::async, [&] { proxy_->stop(60'000); });
  go_on.set_value();
  EXPECT_EQ(answer.get()->body, "first last");
  stopped.get();
  EXPECT_EQ(proxy_->connections(), 0U);
}

TEST_F(SharedLoops, TheEndOfTheClientReleasesWhatIsUnderWay) {
  std::promise<std::shared_ptr<Exchange>> requested;
  serve([&](std::shared_ptr<Exchange> e) { requested.set_value(std::move(e)); });
  const auto owned = std::make_shared<int>(1);
  std::promise<void> begun;
  ClientLoop& loop = client_->next_loop();
  loop.post([&, kept = owned] {
    loop.call({.address = {"127.0.0.1", upstream_->port()}}, {.head = [kept](Response) { ADD_FAILURE(); },
                                                              .body = {},
                                                              .end = [kept](Result<>) { ADD_FAILURE(); }});
    loop.after(3'600'000, [kept] { ADD_FAILURE(); });
    begun.set_value();
  });
  begun.get_future().wait();
  const auto kept = requested.get_future().get();
  proxy_.reset();
  client_.reset();
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace octavo::http
