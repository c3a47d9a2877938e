// Tests the server with gRPC's client library.
#include "grpc/server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <future>
#include <thread>

#include "base/check.h"
#include "base/testing/scratch_directory.h"
#include "grpc/health.h"
#include "http/self_signed.h"

namespace octavo::grpc {
namespace {

// gRPC's default resolver, c-ares, leaks memory.
const int kResolver = setenv("GRPC_DNS_RESOLVER", "native", 1);

using ::grpc::ByteBuffer;
using ::grpc::StatusCode;

// Sends each message back. Ends when the client ends.
class Echo : public Receiver {
 public:
  explicit Echo(std::shared_ptr<Call> call) : call_(std::move(call)) {}

  bool message(std::string_view bytes) override {
    bytes.copy(call_->send(bytes.size()), bytes.size());
    return true;
  }
  void half_closed() override { call_->finish(Status::ok); }
  void disconnected() override {}

 protected:
  const std::shared_ptr<Call> call_;
};

Method echo() {
  return [](std::shared_ptr<Call> call) { return std::make_shared<Echo>(std::move(call)); };
}

class ClientCall {
 public:
  ClientCall(const std::shared_ptr<::grpc::Channel>& channel, const std::string& method)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(this);
    began_ = next();
  }
  ~ClientCall() {
    queue_.Shutdown();
    while (next()) {
    }
  }

  bool write(const std::string& bytes) {
    const ::grpc::Slice slice(bytes);
    call_->Write(ByteBuffer(&slice, 1), this);
    return next();
  }
  std::optional<std::string> read() {
    ByteBuffer buffer;
    call_->Read(&buffer, this);
    if (!next()) return std::nullopt;
    std::vector<::grpc::Slice> slices;
    CHECK(buffer.Dump(&slices).ok());
    std::string bytes;
    for (const auto& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return bytes;
  }
  ::grpc::Status finish() {
    if (began_) {
      call_->WritesDone(this);
      next();
    }
    ::grpc::Status status;
    call_->Finish(&status, this);
    next();
    return status;
  }
  void cancel() { context_.TryCancel(); }

 private:
  bool next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  ::grpc::ClientContext context_;
  ::grpc::CompletionQueue queue_;
  ::grpc::GenericStub stub_;
  std::unique_ptr<::grpc::GenericClientAsyncReaderWriter> call_;
  bool began_ = false;
};

std::unique_ptr<Server> start(Methods methods, ServerOptions options = {}) {
  auto server = Server::start(std::move(options), std::move(methods));
  CHECK(server, "{}", server.error().message);
  return *std::move(server);
}

std::shared_ptr<::grpc::Channel> channel_to(
    const Server& server,
    const std::shared_ptr<::grpc::ChannelCredentials>& credentials = ::grpc::InsecureChannelCredentials()) {
  ::grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // makes a separate connection
  return ::grpc::CreateCustomChannel("localhost:" + std::to_string(server.port()), credentials, arguments);
}

std::string text_of(std::size_t bytes, std::size_t seed) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 251 + seed);
  return text;
}

TEST(GrpcServer, MessagesOfAllSizesComeBack) {
  const auto server = start({{"/test.Echo/Echo", echo()}});
  const auto channel = channel_to(*server);
  ClientCall call(channel, "/test.Echo/Echo");
  for (const std::size_t bytes : {0UL, 1UL, 16'384UL, 65'535UL, 262'144UL, 4UL << 20}) {
    ASSERT_TRUE(call.write(text_of(bytes, bytes)));
    EXPECT_EQ(call.read(), text_of(bytes, bytes)) << bytes;
  }
  EXPECT_TRUE(call.finish().ok());
}

TEST(GrpcServer, CallsAndConnectionsStandBesideEachOther) {
  const auto server = start({{"/test.Echo/Echo", echo()}}, {.threads = 2});
  std::vector<std::jthread> clients;
  for (std::size_t client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      const auto channel = channel_to(*server);
      for (std::size_t round = 0; round < 20; ++round) {
        ClientCall one(channel, "/test.Echo/Echo"), other(channel, "/test.Echo/Echo");
        for (ClientCall* call : {&one, &other}) EXPECT_TRUE(call->write(text_of(100'000, client + round)));
        for (ClientCall* call : {&other, &one}) EXPECT_EQ(call->read(), text_of(100'000, client + round));
        EXPECT_TRUE(one.finish().ok());
        EXPECT_TRUE(other.finish().ok());
      }
    });
  }
}

TEST(GrpcServer, WhatIsNotTakenIsAStatus) {
  const auto server = start({{"/test.Echo/Echo", echo()}}, {.message_bytes_max = 1000});
  const auto channel = channel_to(*server);
  ClientCall unknown(channel, "/test.Echo/Other%1");
  EXPECT_EQ(unknown.read(), std::nullopt);
  const auto status = unknown.finish();
  EXPECT_EQ(status.error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "unknown method /test.Echo/Other%1");
  ClientCall long_one(channel, "/test.Echo/Echo");
  long_one.write(std::string(1001, 'x'));
  EXPECT_EQ(long_one.read(), std::nullopt);
  EXPECT_EQ(long_one.finish().error_code(), StatusCode::RESOURCE_EXHAUSTED);
  ClientCall fine(channel, "/test.Echo/Echo");  // on the same connection
  EXPECT_TRUE(fine.write(std::string(1000, 'x')));
  EXPECT_EQ(fine.read(), std::string(1000, 'x'));
  EXPECT_TRUE(fine.finish().ok());
}

// Accepts one message, then pauses until resume(). Reports the end of the call.
class Waiter : public Echo {
 public:
  struct Seen {
    std::promise<std::shared_ptr<Call>> waits;
    std::promise<void> disconnected;
  };
  Waiter(std::shared_ptr<Call> call, Seen& seen) : Echo(std::move(call)), seen_(seen) {}

  bool message(std::string_view bytes) override {
    Echo::message(bytes);
    if (std::exchange(waited_, true)) return true;
    seen_.waits.set_value(call_);
    return false;
  }
  void disconnected() override { seen_.disconnected.set_value(); }

 private:
  Seen& seen_;
  bool waited_ = false;
};

TEST(GrpcServer, AReceiverThatWaitsGetsTheRestWhenItGoesOn) {
  Waiter::Seen seen;
  const auto server = start({{"/test.Wait/Wait", [&](std::shared_ptr<Call> call) {
                                return std::make_shared<Waiter>(std::move(call), seen);
                              }}});
  const auto channel = channel_to(*server);
  ClientCall call(channel, "/test.Wait/Wait");
  ASSERT_TRUE(call.write("first"));
  EXPECT_EQ(call.read(), "first");
  const auto waiting = seen.waits.get_future().get();
  // The messages exceed the window of a paused call, so the last ones arrive after resume().
  const std::jthread later([&] { waiting->post([waiting] { waiting->resume(); }); });
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(call.write(text_of(200'000, 7)));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(call.read(), text_of(200'000, 7));
  EXPECT_TRUE(call.finish().ok());
}

TEST(GrpcServer, ACallThatTheClientCancelsIsGone) {
  Waiter::Seen seen;
  const auto server = start({{"/test.Wait/Wait", [&](std::shared_ptr<Call> call) {
                                return std::make_shared<Waiter>(std::move(call), seen);
                              }}});
  ClientCall call(channel_to(*server), "/test.Wait/Wait");
  ASSERT_TRUE(call.write("first"));
  const auto waiting = seen.waits.get_future().get();
  call.cancel();
  seen.disconnected.get_future().wait();
  std::promise<void> posted;
  waiting->post([&] {
    waiting->send(3);
    waiting->resume();
    waiting->finish(Status::ok);
    posted.set_value();
  });
  posted.get_future().wait();
  EXPECT_EQ(call.finish().error_code(), StatusCode::CANCELLED);
}

TEST(GrpcServer, AServerThatStopsLetsCallsEnd) {
  auto server = start({{"/test.Echo/Echo", echo()}});
  const auto channel = channel_to(*server);
  ClientCall call(channel, "/test.Echo/Echo");
  ASSERT_TRUE(call.write("before"));
  EXPECT_EQ(call.read(), "before");
  std::jthread stopping([&] { server->stop(60'000); });
  ASSERT_TRUE(call.write("while it stops"));
  EXPECT_EQ(call.read(), "while it stops");
  EXPECT_TRUE(call.finish().ok());
  stopping.join();
  ClientCall late(channel, "/test.Echo/Echo");
  EXPECT_EQ(late.finish().error_code(), StatusCode::UNAVAILABLE);
}

TEST(GrpcServer, AServerThatDoesNotWaitCutsCallsOff) {
  auto server = start({{"/test.Echo/Echo", echo()}});
  ClientCall call(channel_to(*server), "/test.Echo/Echo");
  ASSERT_TRUE(call.write("before"));
  EXPECT_EQ(call.read(), "before");
  server->stop(0);
  EXPECT_EQ(call.finish().error_code(), StatusCode::UNAVAILABLE);
}

TEST(GrpcServer, TlsSpeaksHttp2) {
  const http::SelfSigned made = http::make_self_signed("test", "DNS:localhost");
  const ScratchDirectory folder;
  folder.write("crt", made.certificate);
  folder.write("key", made.key);
  auto tls = http::ServerTls::load({.certfile = folder / "crt", .keyfile = folder / "key", .http2 = true});
  ASSERT_TRUE(tls);
  const auto server = start({{"/test.Echo/Echo", echo()}}, {.tls = *std::move(tls)});
  ::grpc::SslCredentialsOptions trusts;
  trusts.pem_root_certs = made.certificate;
  ClientCall call(channel_to(*server, ::grpc::SslCredentials(trusts)), "/test.Echo/Echo");
  ASSERT_TRUE(call.write(text_of(1'000'000, 1)));
  EXPECT_EQ(call.read(), text_of(1'000'000, 1));
  EXPECT_TRUE(call.finish().ok());
}

TEST(GrpcServer, HealthIsToldOfEachService) {
  Health health;
  health.set("", true);
  health.set("liveness", false);
  const auto server = start({{std::string(kHealthCheck), health_check(health)}});
  const auto channel = channel_to(*server);
  const auto check = [&](const std::string& request) {
    ClientCall call(channel, std::string(kHealthCheck));
    call.write(request);
    const auto answer = call.read();
    const auto status = call.finish();
    return status.ok() ? *answer : std::to_string(status.error_code());
  };
  EXPECT_EQ(check(""), "\x08\x01");
  EXPECT_EQ(check("\x0a\x08liveness"), "\x08\x02");
  EXPECT_EQ(check("\x0a\x05other"), std::to_string(StatusCode::NOT_FOUND));
  EXPECT_EQ(check("\x0a\x7fshort"), std::to_string(StatusCode::NOT_FOUND));
  health.stop();
  EXPECT_EQ(check(""), "\x08\x02");
}

TEST(GrpcServer, WhatIsNoHttp2EndsTheConnection) {
  const auto server = start({{"/test.Echo/Echo", echo()}});
  namespace asio = boost::asio;
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::make_address("127.0.0.1"), server->port()});
  asio::write(socket, asio::buffer(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  std::string rest;
  boost::system::error_code error;
  asio::read(socket, asio::dynamic_buffer(rest), error);  // until the connection closes
  EXPECT_TRUE(error == asio::error::eof || error == asio::error::connection_reset) << error.message();
}

TEST(GrpcServer, APortThatIsTakenIsAnError) {
  const auto server = start({});
  const auto second = Server::start({.port = server->port(), .field = "grpc-port"}, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().field, "grpc-port");
}

}  // namespace
}  // namespace octavo::grpc
