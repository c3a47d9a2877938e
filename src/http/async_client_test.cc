#include "http/async_client.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <thread>

#include "base/testing/eventually.h"
#include "dist/tcp_socket.h"
#include "http/server.h"

namespace octavo::http {
namespace {

struct Reply {
  Response head;
  std::string body;
  int pieces = 0;
  Result<> result;
};

class AsyncClientTest : public testing::Test {
 protected:
  // port 0: any free port
  void serve(Handler handler, int port = 0) {
    auto started = Server::start({.port = static_cast<std::uint16_t>(port)}, std::move(handler));
    ASSERT_TRUE(started);
    server_ = *std::move(started);
  }
  // port 0: port of server_. on_piece: called after each piece of the body.
  Reply call(std::string target, std::string body = {}, int timeout_ms = 60'000, std::uint16_t port = 0,
             std::function<void()> on_piece = [] {}) {
    auto answer = std::make_shared<Reply>();
    std::promise<void> ended;
    ClientLoop& loop = client_.next_loop();
    loop.post([&] {
      if (port == 0) port = server_ ? server_->port() : std::uint16_t{1};
      CallRequest request{.address = {"127.0.0.1", port},
                          .method = body.empty() ? "GET" : "POST",
                          .target = target,
                          .timeout_ms = timeout_ms};
      if (!body.empty()) request.body = std::make_shared<const std::string>(body);
      loop.call(std::move(request), {.head = [=](Response head) { answer->head = std::move(head); },
                                     .body =
                                         [=](std::string_view piece) {
                                           answer->body += piece;
                                           ++answer->pieces;
                                           on_piece();
                                         },
                                     .end =
                                         [=, &ended](Result<> result) {
                                           answer->result = std::move(result);
                                           ended.set_value();
                                         }});
    });
    ended.get_future().wait();
    return *answer;
  }

  std::vector<std::shared_ptr<Exchange>> kept_;
  std::unique_ptr<Server> server_;
  AsyncClient client_{{}};
};

// Sends a response header but reads no body, and keeps the connection open.
class EarlyAnswerer {
 public:
  EarlyAnswerer() : thread_([this] { run(); }) {}
  ~EarlyAnswerer() {
    done_.set_value();
    thread_.join();
  }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  using tcp = boost::asio::ip::tcp;
  void run() {
    tcp::socket socket(io_);
    acceptor_.accept(socket);
    char first = 0;
    socket.read_some(boost::asio::buffer(&first, 1));
    const std::string answer = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig";
    boost::asio::write(socket, boost::asio::buffer(answer));
    done_.get_future().wait();
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::promise<void> done_;
  std::thread thread_;
};

TEST_F(AsyncClientTest, HearsAnAnswerThatComesBeforeTheBodyIsRead) {
  const EarlyAnswerer peer;
  const Reply reply = call("/", std::string(64 << 20, 'x'), 60'000, peer.port());
  EXPECT_TRUE(reply.result) << reply.result.error().message;
  EXPECT_EQ(reply.head.status, 413);
  EXPECT_EQ(reply.body, "big");
}

TEST_F(AsyncClientTest, ARefusalBeforeTheBodyIsHeardThoughThePeerCloses) {
  ServerOptions options;
  options.admit = [](const Request&) { return Response{.status = 401, .body = "no key"}; };
  server_ = *Server::start(std::move(options), [](std::shared_ptr<Exchange> e) { e->respond({}); });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(call("/", std::string(8 << 20, 'x')).head.status, 401);
}

TEST_F(AsyncClientTest, ALoopThatPausesEndsAllCalls) {
  serve([](auto exchange) { exchange->respond({.body = exchange->request().path}); });
  constexpr int kCalls = 50;
  int bodies = 0, left = kCalls;
  std::promise<void> ended;
  AsyncClient pausing({.pause_ms = 3});
  ClientLoop& loop = pausing.next_loop();
  loop.post([&] {
    for (int i = 0; i < kCalls; ++i)
      loop.call({.address = {"127.0.0.1", server_->port()}, .target = "/x"},
                {.head = [](const Response&) {},
                 .body = [&](std::string_view body) { bodies += body == "/x"; },
                 .end =
                     [&](const Result<>&) {
                       if (--left == 0) ended.set_value();
                     }});
  });
  ended.get_future().wait();
  EXPECT_EQ(bodies, kCalls);
}

TEST_F(AsyncClientTest, SaysWhetherThePeerWasReached) {
  EXPECT_EQ(call("/").result.error().code, ErrorCode::unavailable) << "nothing listens there";
  serve([this](std::shared_ptr<Exchange> e) { kept_.push_back(e); });
  EXPECT_EQ(call("/", {}, 1000).result.error().code, ErrorCode::io) << "no answer in time";
}

TEST_F(AsyncClientTest, ReadsAnAnswerAndUsesItsConnectionAgain) {
  serve([](std::shared_ptr<Exchange> e) {
    Response response{
        .status = 201, .content_type = "text/plain", .body = e->request().method + e->request().body};
    response.headers.add("X-Field", "value");
    e->respond(response);
  });
  for (int i = 0; i < 3; ++i) {
    const Reply answer = call("/", std::string(100'000, 'x'));
    ASSERT_TRUE(answer.result) << answer.result.error().message;
    EXPECT_EQ(answer.head.status, 201);
    EXPECT_EQ(answer.head.content_type, "text/plain");
    EXPECT_EQ(answer.head.headers.find("x-field"), "value");
    EXPECT_EQ(answer.body, "POST" + std::string(100'000, 'x'));
  }
  EXPECT_EQ(server_->connections(), 1U);
}

// A call that the test repeats. Each round waits for its end.
class Repeated {
 public:
  Repeated(ClientLoop& loop, std::uint16_t port, int timeout_ms) : loop_(loop) {
    loop_.post([this, port, timeout_ms] {
      call_ = loop_.call({.address = {"127.0.0.1", port}, .timeout_ms = timeout_ms, .repeats = true},
                         {.head = [](const Response&) {},
                          .body = [this](std::string_view piece) { body_ += piece; },
                          .end =
                              [this](const Result<>& result) {
                                ended_.set_value(result ? body_ : result.error().message);
                              }});
    });
  }
  // Returns the body, or the error.
  std::string wait() { return ended_.get_future().get(); }
  std::string again() {
    ended_ = {};
    body_.clear();
    loop_.post([this] { call_.lock()->again(); });
    return wait();
  }
  // Returns false if the call is never destroyed. Handlers that still wait in the loop own it for a moment.
  bool ends_by_cancel() {
    loop_.post([this] { call_.lock()->cancel(); });
    return eventually([&] { return call_.expired(); });
  }

 private:
  ClientLoop& loop_;
  std::weak_ptr<Call> call_;
  std::string body_;
  std::promise<std::string> ended_;
};

TEST_F(AsyncClientTest, ACallIsRepeatedOnItsConnection) {
  const std::pair<Socket, int> port = reserve_port().value();  // stays free while the server is away
  int requests = 0;
  serve([&](std::shared_ptr<Exchange> e) { e->respond({.body = std::to_string(++requests)}); }, port.second);
  Repeated call(client_.next_loop(), server_->port(), 60'000);
  EXPECT_EQ(call.wait(), "1");
  EXPECT_EQ(call.again(), "2");
  EXPECT_EQ(call.again(), "3");
  EXPECT_EQ(server_->connections(), 1U);
  server_.reset();
  EXPECT_NE(call.again().find("cannot connect"), std::string::npos);
  serve([](std::shared_ptr<Exchange> e) { e->respond({.body = "new"}); }, port.second);
  EXPECT_EQ(call.again(), "new");
  EXPECT_TRUE(call.ends_by_cancel());
}

TEST_F(AsyncClientTest, ARepeatedCallThatWasNotAnsweredCanBeAnsweredLater) {
  bool silent = true;
  serve([&](std::shared_ptr<Exchange> e) {
    if (std::exchange(silent, false)) return kept_.push_back(e);
    e->respond({.body = "late"});
  });
  Repeated call(client_.next_loop(), server_->port(), 2000);
  EXPECT_NE(call.wait().find("no answer: timed out"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return call.again() == "late"; }));
}

TEST_F(AsyncClientTest, StreamsArePassedOnAsTheyCome) {
  std::promise<void> first_seen;
  serve([&](std::shared_ptr<Exchange> e) {
    e->start_stream({.content_type = "text/event-stream"});
    e->write("data: 1\n\n");
    std::thread([&, e] {
      first_seen.get_future().wait();
      e->write("data: 2\n\n");
      e->finish();
    }).detach();
  });
  bool seen = false;
  const Reply answer = call("/", "", 60'000, 0, [&] {
    if (!std::exchange(seen, true)) first_seen.set_value();
  });
  ASSERT_TRUE(answer.result);
  EXPECT_EQ(answer.body, "data: 1\n\ndata: 2\n\n");
  EXPECT_EQ(answer.pieces, 2);
}

// Answers one request, and closes the connection when the next request has arrived. Answers requests on later
// connections.
class ClosesAfterOne {
 public:
  // reads: whether the second request is read before the connection is closed
  explicit ClosesAfterOne(bool reads) : thread_([this, reads] { run(reads); }) {}
  ~ClosesAfterOne() { thread_.join(); }
  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void stop() {
    tcp::socket socket(io_);
    socket.connect(acceptor_.local_endpoint());
  }

 private:
  using tcp = boost::asio::ip::tcp;
  static void answer(tcp::socket& socket) {
    read_request(socket);
    boost::asio::write(socket,
                       boost::asio::buffer(std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")));
  }
  // The requests of this test fit into one segment.
  static void read_request(tcp::socket& socket) {
    std::array<char, 4096> bytes{};
    boost::system::error_code ended;
    socket.read_some(boost::asio::buffer(bytes), ended);
  }
  void run(bool reads) {
    {
      tcp::socket first(io_);
      acceptor_.accept(first);
      answer(first);
      first.wait(tcp::socket::wait_read);
      if (reads) read_request(first);
    }
    tcp::socket second(io_);
    acceptor_.accept(second);
    boost::system::error_code no_request;
    second.wait(tcp::socket::wait_read, no_request);
    if (second.available(no_request) > 0) answer(second);
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

TEST_F(AsyncClientTest, ARequestThatThePeerHasNotReadIsSentOnANewConnection) {
  const ClosesAfterOne peer(false);
  EXPECT_EQ(call("/", "x", 60'000, peer.port()).body, "ok");
  EXPECT_EQ(call("/", "x", 60'000, peer.port()).body, "ok");
}

TEST_F(AsyncClientTest, ARequestThatThePeerHasReadIsNotSentASecondTime) {
  ClosesAfterOne peer(true);
  EXPECT_EQ(call("/", "x", 60'000, peer.port()).body, "ok");
  const Reply second = call("/", "x", 60'000, peer.port());
  ASSERT_FALSE(second.result) << "the peer got the request twice";
  EXPECT_EQ(second.result.error().code, ErrorCode::io);
  peer.stop();
}

TEST_F(AsyncClientTest, AnAnswerCutShortIsAFailure) {
  serve([](std::shared_ptr<Exchange> e) {
    e->start_stream({});
    e->write("half");  // finish() is missing
  });
  const Reply answer = call("/");
  EXPECT_EQ(answer.body, "half");
  EXPECT_FALSE(answer.result);
}

TEST_F(AsyncClientTest, AConnectionThatEndsBeforeAnyByteIsAFailure) {
  std::promise<std::shared_ptr<Exchange>> requested;
  serve([&](std::shared_ptr<Exchange> e) { requested.set_value(std::move(e)); });
  std::thread stopping([&] {
    const auto kept = requested.get_future().get();
    server_->stop(0);
  });
  EXPECT_FALSE(call("/").result);
  stopping.join();
}

TEST_F(AsyncClientTest, NobodyThereAndNoAnswerAreFailures) {
  EXPECT_FALSE(call("/").result) << "nothing listens on port 1";
  // The request may reach the server after the timeout.
  serve([this](std::shared_ptr<Exchange> e) { kept_.push_back(std::move(e)); });
  const Reply answer = call("/", "", 50);
  ASSERT_FALSE(answer.result);
  EXPECT_NE(answer.result.error().message.find("timed out"), std::string::npos);
}

TEST_F(AsyncClientTest, CancellingTellsTheServer) {
  std::promise<CloseReason> closed;
  std::shared_ptr<Exchange> held;
  serve([&](std::shared_ptr<Exchange> e) {
    e->on_close([&](CloseReason reason) { closed.set_value(reason); });
    e->start_stream({});
    e->write("x");
    held = std::move(e);
  });
  ClientLoop& loop = client_.next_loop();
  std::shared_ptr<Call> running;
  loop.post([&] {
    running = loop.call({.address = {"127.0.0.1", server_->port()}},
                        {.head = [](Response) {},
                         .body = [&](std::string_view) { running->cancel(); },
                         .end = [](Result<>) { ADD_FAILURE() << "a cancelled call has no end"; }});
  });
  EXPECT_EQ(closed.get_future().get(), CloseReason::client_disconnected);
}

TEST_F(AsyncClientTest, WaitsUntilTheReaderIsReady) {
  const std::string large(8 << 20, 'x');
  serve([&](std::shared_ptr<Exchange> e) { e->respond({.body = large}); });
  ClientLoop& loop = client_.next_loop();
  std::promise<std::size_t> ended;
  std::atomic<std::size_t> seen = 0;
  std::atomic<bool> ready = false;
  loop.post([&] {
    loop.call({.address = {"127.0.0.1", server_->port()}},
              {.head = [](Response) {},
               .body = [&](std::string_view piece) { seen += piece.size(); },
               .end = [&](Result<>) { ended.set_value(seen); },
               .ready = [&] { return ready.load(); }});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(seen, large.size());
  ready = true;
  EXPECT_EQ(ended.get_future().get(), large.size());
}

TEST(ParseBaseUrl, TakesHostAndPort) {
  EXPECT_EQ(parse_base_url("http://a.b:8000")->text(), "a.b:8000");
  EXPECT_EQ(parse_base_url("http://a/")->port, 80);
  EXPECT_EQ(parse_base_url("https://a")->url(), "https://a:443");
  EXPECT_EQ(parse_base_url("http://[::1]:9")->text(), "[::1]:9");
  for (const char* wrong : {"", "a:80", "ftp://a", "http://", "http://a:0", "http://a:99999", "http://a:8x",
                            "http://a/v1", "http://a b", "http://a\r\nX: y", "http://[::1"})
    EXPECT_EQ(parse_base_url(wrong).error().field, "url") << wrong;
}

}  // namespace
}  // namespace octavo::http
