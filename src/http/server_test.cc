#include "http/server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include "base/testing/eventually.h"
#include "http/client.h"

namespace octavo::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class ServerTest : public ::testing::Test {
 protected:
  void serve(Handler handler, ServerOptions options = {}) {
    auto started = Server::start(std::move(options), std::move(handler));
    ASSERT_TRUE(started.has_value()) << started.error().message;
    server_ = *std::move(started);
  }
  Client client() { return Client::connect({.port = server_->port(), .timeout_ms = 60'000}).value(); }

  std::string raw(std::string_view bytes) {
    Client c = client();
    EXPECT_TRUE(c.send_raw(bytes).has_value());
    std::string all;
    for (;;) {
      const auto piece = c.receive_raw();
      if (!piece || piece->empty()) return all;
      all += *piece;
    }
  }

  std::unique_ptr<Server> server_;
};

void echo(const std::shared_ptr<Exchange>& exchange) {
  const Request& r = exchange->request();
  exchange->respond(
      {.content_type = "text/plain", .body = fmt::format("{} {} {} {}", r.method, r.path, r.query, r.body)});
}

template <class T>
bool ready(std::future<T>& future) {
  return future.wait_for(60s) == std::future_status::ready;
}

TEST_F(ServerTest, AnswersRequestsOnOneConnection) {
  serve(echo);
  Client c = client();
  EXPECT_EQ(c.get("/a%20b?q=1").value().body, "GET /a b q=1 ");
  EXPECT_EQ(c.post_json("/x", "body").value().body, "POST /x  body");
  const Response head = c.request("HEAD", "/x").value();
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.headers.find("Content-Length"), "9");
  EXPECT_EQ(c.get("/again").value().body, "GET /again  ");
  EXPECT_EQ(server_->connections(), 1u);
}

TEST_F(ServerTest, TakesChunkedBodiesByteByByteAndPipelinedRequests) {
  serve(echo);
  Client c = client();
  for (const char byte : std::string("POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                                     "chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"))
    ASSERT_TRUE(c.send_raw({&byte, 1}).has_value());
  EXPECT_THAT(c.receive_raw().value(), HasSubstr("POST /p  abcde"));

  const std::string two =
      raw("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nConnection: "
          "close\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_THAT(two, HasSubstr("GET /1  "));
  EXPECT_THAT(two, HasSubstr("POST /2  hi"));
}

TEST_F(ServerTest, StreamsFromAnotherThread) {
  std::vector<std::thread> writers;
  serve([&](std::shared_ptr<Exchange> exchange) {
    exchange->start_stream({.content_type = "text/event-stream"});
    writers.emplace_back([exchange] {
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(exchange->write(fmt::format("[{}]", i)));
      exchange->finish();
    });
  });
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += fmt::format("[{}]", i);
  Client c = client();
  EXPECT_EQ(c.get("/").value().body, expected);
  EXPECT_EQ(c.get("/").value().body, expected);
  EXPECT_THAT(raw("GET / HTTP/1.0\r\n\r\n"), HasSubstr("\r\n\r\n" + expected));
  for (auto& writer : writers) writer.join();
}

TEST_F(ServerTest, TellsTheOwnerWhenTheClientGoesWhileNothingIsWritten) {
  for (const bool half : {false, true}) {
    std::promise<CloseReason> closed;
    auto reason = closed.get_future();
    std::shared_ptr<Exchange> held;
    int counted = 0;
    serve(
        [&](std::shared_ptr<Exchange> exchange) {
          exchange->on_close([&](CloseReason r) { closed.set_value(r); });
          held = std::move(exchange);
        },
        {.answered = [&](const Answered& answered) { counted = answered.status; }});
    Client c = client();
    ASSERT_TRUE(c.send_raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n").has_value());
    EXPECT_EQ(reason.wait_for(50ms), std::future_status::timeout);
    half ? c.shutdown_send() : c.close();
    ASSERT_TRUE(ready(reason));
    EXPECT_EQ(reason.get(), CloseReason::client_disconnected);
    EXPECT_FALSE(held->write("too late"));
    held.reset();
    EXPECT_EQ(counted, 499) << "the server has not failed";
    server_.reset();
  }
}

TEST_F(ServerTest, CutsOffAStreamThatIsNotRead) {
  std::promise<CloseReason> closed;
  auto reason = closed.get_future();
  std::promise<std::shared_ptr<Exchange>> arrived;
  auto exchange = arrived.get_future();
  serve(
      [&](std::shared_ptr<Exchange> e) {
        e->on_close([&](CloseReason r) { closed.set_value(r); });
        e->start_stream({});
        arrived.set_value(std::move(e));
      },
      {.stream_buffer_bytes_max = 64 << 10});
  Client c = client();
  ASSERT_TRUE(c.send_raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n").has_value());
  ASSERT_TRUE(ready(exchange));
  const auto stream = exchange.get();
  const std::string piece(1000, 'x');
  std::size_t written = 0;
  while (stream->write(piece)) {
    written += piece.size();
    ASSERT_LT(written, 1u << 30);
  }
  ASSERT_TRUE(ready(reason));
  EXPECT_EQ(reason.get(), CloseReason::too_slow);
}

// A client is too slow only if it leaves earlier pieces unread.
TEST_F(ServerTest, APieceLargerThanTheBufferReachesItsReader) {
  const std::string piece(4 << 20, 'x');
  serve(
      [&](const std::shared_ptr<Exchange>& e) {
        e->start_stream({});
        EXPECT_TRUE(e->write(piece));
        e->finish();
      },
      {.stream_buffer_bytes_max = 64 << 10});
  EXPECT_EQ(client().get("/").value().body.size(), piece.size());
}

TEST_F(ServerTest, AnOwnerThatWaitsForItsReaderIsNotCut) {
  constexpr std::size_t kPiece = 256 << 10, kPieces = 128;
  std::thread owner;
  serve(
      [&](std::shared_ptr<Exchange> e) {
        e->start_stream({});
        owner = std::thread([e = std::move(e)] {
          for (std::size_t i = 0; i < kPieces; ++i) {
            std::promise<void> room;
            if (e->wait_writable([&] { room.set_value(); })) room.get_future().wait();
            EXPECT_TRUE(e->write(std::string(kPiece, 'x')));
          }
          e->finish();
        });
      },
      {.stream_buffer_bytes_max = 64 << 10});
  EXPECT_EQ(client().get("/").value().body.size(), kPiece * kPieces);
  owner.join();
}

// read_for() does not return the end of a chunk ("\r\n") as an empty piece.
TEST_F(ServerTest, AReaderWaitsNoLongerThanItSays) {
  std::promise<std::shared_ptr<Exchange>> opened;
  serve([&](const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({});
    EXPECT_TRUE(exchange->write("one"));
    opened.set_value(exchange);
  });
  Client reader = client();
  ASSERT_TRUE(reader.open("GET", "/"));
  const auto exchange = opened.get_future().get();
  std::string all;
  while (all != "one") all += reader.read_for(60'000)->value();
  EXPECT_EQ(reader.read_for(1)->value(), "");
  EXPECT_TRUE(exchange->write("two"));
  exchange->finish();
  EXPECT_EQ(reader.read_for(60'000)->value(), "two");
  EXPECT_EQ(*reader.read_for(60'000), std::nullopt);
}

TEST_F(ServerTest, AnUnansweredExchangeIs500AndADroppedStreamIsCut) {
  serve([](const std::shared_ptr<Exchange>& exchange) {
    if (exchange->request().path == "/stream") exchange->start_stream({.body = "part"});
  });
  EXPECT_EQ(client().get("/").value().status, 500);
  Client c = client();
  ASSERT_TRUE(c.open("GET", "/stream").has_value());
  Result<std::optional<std::string>> last = c.read();
  while (last && *last) last = c.read();
  EXPECT_FALSE(last.has_value());
}

TEST_F(ServerTest, LateCallsForAFinishedExchangeDoNotReachTheNextOne) {
  std::shared_ptr<Exchange> first;
  serve([&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/first") {
      first = exchange;
      return exchange->respond({.body = "one"});
    }
    first->respond({.body = "stray"});
    EXPECT_FALSE(first->write("stray"));
    first.reset();
    exchange->respond({.body = "two"});
  });
  Client c = client();
  EXPECT_EQ(c.get("/first").value().body, "one");
  EXPECT_EQ(c.get("/second").value().body, "two");
}

TEST_F(ServerTest, RefusesMalformedAndOversizedRequests) {
  serve(echo, {.body_bytes_max = 1000});
  const std::string host = "Host: x\r\n";
  const auto status = [&](const std::string& bytes) { return raw(bytes).substr(0, 12); };
  EXPECT_EQ(status("GARBAGE\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), "HTTP/1.1 400");
  for (const std::string bad : {"", "u@a", "a,b", "a/b", "a b", "http://a"})
    EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: " + bad + "\r\n\r\n"), "HTTP/1.1 400") << bad;
  for (const std::string good : {"a", "a:80", "[::1]:80", "127.0.0.1", "under_score"})
    EXPECT_EQ(status("GET / HTTP/1.1\r\nConnection: close\r\nHost: " + good + "\r\n\r\n"), "HTTP/1.1 200")
        << good;
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + "X: a\r\n\tb: c\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET /../x HTTP/1.1\r\n" + host + "\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("GET / HTTP/2.0\r\n" + host + "\r\n"), "HTTP/1.1 505");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Content-Length: 1001\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Content-Length: 9223372036854775808\r\n\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Content-Length: 18446744073709551616\r\n\r\n"),
            "HTTP/1.1 400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            "HTTP/1.1 400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "HTTP/1.1 400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n"),
            "HTTP/1.1 501");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\n\r\n"), "HTTP/1.1 501");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
            "HTTP/1.1 400");
  EXPECT_EQ(status("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + "X: " + std::string(70'000, 'a') + "\r\n\r\n"),
            "HTTP/1.1 431");
  std::string many;
  for (int i = 0; i < 101; ++i) many += fmt::format("X{}: y\r\n", i);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + many + "\r\n"), "HTTP/1.1 431");
  EXPECT_EQ(client().get("/still").value().body, "GET /still  ");
  serve(echo, {.header_ms_max = 300});
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + host + "X-Slow: "), "HTTP/1.1 408");
}

TEST_F(ServerTest, AMillionOneByteChunksTakeNoMoreThanTheirBytes) {
  serve([](const std::shared_ptr<Exchange>& e) {
    e->respond({.body = std::to_string(e->request().body.size())});
  });
  Client c = client();
  ASSERT_TRUE(c.send_raw("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").has_value());
  std::string chunks;
  for (int i = 0; i < 1000; ++i) chunks += "1\r\nx\r\n";
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(c.send_raw(chunks).has_value());
  ASSERT_TRUE(c.send_raw("0\r\n\r\n").has_value());
  EXPECT_THAT(c.receive_raw().value(), HasSubstr("1000000"));
}

TEST_F(ServerTest, BoundsAllBodiesTogether) {
  std::promise<std::shared_ptr<Exchange>> arrived;
  auto held = arrived.get_future();
  serve(
      [&](std::shared_ptr<Exchange> e) {
        if (e->request().path == "/hold") return arrived.set_value(std::move(e));
        const std::size_t size = e->take_body().size();
        e->respond({.body = std::to_string(size)});
      },
      {.bodies_bytes_max = 1000});
  Client holder = client();
  ASSERT_TRUE(
      holder.send_raw("POST /hold HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\n\r\n" + std::string(600, 'x'))
          .has_value());
  ASSERT_TRUE(ready(held));
  auto exchange = held.get();
  EXPECT_EQ(client().post_json("/", std::string(401, 'x'))->status, 503);
  EXPECT_THAT(raw("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n191\r\n" +
                  std::string(401, 'x') + "\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(client().post_json("/", std::string(400, 'x'))->body, "400");
  // the moved body still counts in the budget
  EXPECT_EQ(exchange->take_body().size(), 600u);
  EXPECT_EQ(client().post_json("/", std::string(401, 'x'))->status, 503);
  exchange->release_body();
  EXPECT_EQ(client().post_json("/", std::string(1000, 'x'))->body, "1000");
  exchange->respond({});
}

TEST_F(ServerTest, CanRefuseBeforeTheBodyIsRead) {
  serve(echo, {.admit = [](const Request& r) -> std::optional<Response> {
          if (r.path != "/closed") return std::nullopt;
          return Response{.status = 401};
        }});
  EXPECT_THAT(raw("POST /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"),
              StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(client().post_json("/open", "x")->status, 200);
}

TEST_F(ServerTest, AnswersExpectContinue) {
  serve(echo);
  Client c = client();
  ASSERT_TRUE(c.send_raw("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
                  .has_value());
  EXPECT_EQ(c.receive_raw().value(), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(c.send_raw("hi").has_value());
  EXPECT_THAT(c.receive_raw().value(), HasSubstr("POST /  hi"));
  ASSERT_TRUE(
      c.send_raw("POST / HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\nContent-Length: 2\r\n\r\n").has_value());
  ASSERT_TRUE(c.send_raw("ho").has_value());
  EXPECT_THAT(c.receive_raw().value(), HasSubstr("POST /  ho")) << "no other expectation is defined";
}

TEST_F(ServerTest, RefusesTooManyConnections) {
  serve(echo, {.connections_max = 2});
  Client a = client();
  Client b = client();
  EXPECT_TRUE(a.get("/").has_value());
  EXPECT_TRUE(b.get("/").has_value());
  EXPECT_THAT(raw(""), StartsWith("HTTP/1.1 503"));
}

TEST_F(ServerTest, ClosesIdleConnections) {
  serve(echo, {.idle_ms_max = 20});
  EXPECT_EQ(client().receive_raw().value(), "");
}

TEST_F(ServerTest, SpeaksCors) {
  serve(echo, {.cors = CorsOptions{.origins = {"https://a"}}});
  Client c = client();
  const Response preflight =
      c.request("OPTIONS", "/v1/x", "", {{"Origin", "https://a"}, {"Access-Control-Request-Method", "POST"}})
          .value();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.headers.find("Access-Control-Allow-Origin"), "https://a");
  EXPECT_EQ(c.request("GET", "/", "", {{"Origin", "https://a"}})->headers.find("Access-Control-Allow-Origin"),
            "https://a");
  EXPECT_EQ(c.request("GET", "/", "", {{"Origin", "https://b"}})->headers.find("Access-Control-Allow-Origin"),
            std::nullopt);
}

TEST_F(ServerTest, StopLetsAnswersInFlightFinish) {
  std::promise<std::shared_ptr<Exchange>> arrived;
  serve(
      [&](std::shared_ptr<Exchange> exchange) {
        if (exchange->request().path == "/idle") return exchange->respond({.body = "ok"});
        arrived.set_value(std::move(exchange));
      },
      {.threads = 2});
  Client idle = client();
  EXPECT_EQ(idle.get("/idle").value().body, "ok");
  Client finishing = client();
  ASSERT_TRUE(finishing.send_raw("GET /finish HTTP/1.1\r\nHost: x\r\n\r\n").has_value());
  const auto exchange = arrived.get_future().get();
  std::thread stopper([&] { server_->stop(3'600'000); });
  EXPECT_EQ(idle.receive_raw().value(), "");
  exchange->respond({.body = "done"});
  EXPECT_THAT(finishing.receive_raw().value(), HasSubstr("done"));
  finishing.close();
  stopper.join();
  EXPECT_FALSE(Client::connect({.port = server_->port()}).has_value());
}

TEST_F(ServerTest, StopCutsWhatIsLeftAfterItsGrace) {
  std::promise<std::shared_ptr<Exchange>> arrived;
  std::promise<CloseReason> closed;
  serve([&](std::shared_ptr<Exchange> exchange) {
    exchange->on_close([&](CloseReason reason) { closed.set_value(reason); });
    arrived.set_value(std::move(exchange));
  });
  Client hanging = client();
  ASSERT_TRUE(hanging.send_raw("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n").has_value());
  const auto exchange = arrived.get_future().get();
  server_->stop(10);
  EXPECT_EQ(closed.get_future().get(), CloseReason::server_stopping);
}

TEST_F(ServerTest, StopAnswersTheFirstRequestOfANewConnection) {
  serve(echo);
  Client fresh = client();
  while (server_->connections() == 0) std::this_thread::sleep_for(1ms);
  std::thread stopper([&] { server_->stop(60'000); });
  while (Client::connect({.port = server_->port()}).has_value()) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(fresh.get("/late").value().status, 200);
  stopper.join();
}

// Servers replace each other on a port while clients connect. No connection is reset.
TEST(Servers, ShareAPort) {
  std::atomic<int> answered = 0, answered_by_next = 0;
  const auto answering = [](std::atomic<int>& count) {
    return [&count](std::shared_ptr<Exchange> exchange) {
      ++count;
      exchange->respond({.body = "here"});
    };
  };
  ServerOptions options{.reuse_port = true};
  auto server = Server::start(options, answering(answered)).value();
  options.port = server->port();
  EXPECT_FALSE(Server::start({.port = options.port}, answering(answered)));
  std::atomic<int> failed = 0;
  std::atomic<bool> ends = false;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      while (!ends) {
        auto client = Client::connect({.port = options.port});
        if (!client || !client->get("/")) ++failed;
      }
    });
  const auto more = [](const std::atomic<int>& count) {
    for (const int before = count; count < before + 50;) std::this_thread::sleep_for(1ms);
  };
  for (int i = 0; i < 3; ++i) {
    auto next = Server::start(options, answering(answered_by_next)).value();
    more(answered_by_next);
    server->stop(60'000);
    more(answered_by_next);
    server = std::move(next);
  }
  ends = true;
  for (std::thread& thread : clients) thread.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(ServerTest, StopLetsAnUploadInProgressEnd) {
  serve(echo);
  Client c = client();
  ASSERT_TRUE(c.send_raw("POST /up HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n"
                         "abc")
                  .has_value());
  EXPECT_EQ(c.receive_raw().value(), "HTTP/1.1 100 Continue\r\n\r\n");
  std::thread stopper([&] { server_->stop(60'000); });
  while (Client::connect({.port = server_->port()}).has_value()) std::this_thread::sleep_for(5ms);
  ASSERT_TRUE(c.send_raw("def").has_value());
  EXPECT_THAT(c.receive_raw().value(), HasSubstr("POST /up  abcdef"));
  c.close();
  stopper.join();
}

TEST_F(ServerTest, SurvivesRandomBytes) {
  serve(echo, {.header_ms_max = 100, .idle_ms_max = 100});
  std::mt19937 random(7);
  const std::string valid =
      "POST /a?b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = valid;
    if (round % 3 == 0) bytes.assign(random() % 2000, '\0');
    const int changes = round % 3 == 0 ? static_cast<int>(bytes.size()) : static_cast<int>(random() % 4) + 1;
    for (int i = 0; i < changes; ++i)
      bytes[round % 3 == 0 ? static_cast<std::size_t>(i) : random() % bytes.size()] =
          static_cast<char>(random());
    Client c = client();
    (void)c.send_raw(bytes);
    c.shutdown_send();
    if (round % 2 == 0) (void)c.receive_raw();
  }
  // On a busy machine, this connection may also time out.
  EXPECT_TRUE(eventually([&] {
    const auto alive = client().get("/alive");
    return alive && alive->status == 200;
  }));
}

}  // namespace
}  // namespace octavo::http
