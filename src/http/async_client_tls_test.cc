#include <gmock/gmock.h>

#include <future>

#include "base/testing/scratch_directory.h"
#include "dist/tcp_socket.h"
#include "http/async_client.h"
#include "http/server.h"
#include "http/testing/certificate.h"
#include "http/tls.h"

namespace octavo::http {
namespace {

using ::testing::HasSubstr;

class AsyncClientTlsTest : public testing::Test {
 protected:
  AsyncClientTlsTest() { write_certificate(certfile_, keyfile_, "server"); }

  // port 0: any free port
  void serve(TlsOptions tls, int port = 0) {
    ServerOptions options{.port = static_cast<std::uint16_t>(port), .tls = std::move(tls)};
    auto started = Server::start(std::move(options), [](const std::shared_ptr<Exchange>& exchange) {
      const Request& request = exchange->request();
      if (request.path != "/stream") return exchange->respond({.body = request.path + request.body});
      exchange->start_stream({.content_type = "text/plain"});
      for (int i = 0; i < 100; ++i) exchange->write(std::string(1000, static_cast<char>('a' + i % 26)));
      exchange->finish();
    });
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
  }

  std::string call(AsyncClient& client, const std::string& target, std::string body = {},
                   std::shared_ptr<SSL_CTX> tls = {}) {
    std::string answer;
    std::promise<Result<>> ended;
    ClientLoop& loop = client.next_loop();
    loop.post([&] {
      CallRequest request{.address = {.host = "127.0.0.1", .port = server_->port(), .tls = true},
                          .method = body.empty() ? "GET" : "POST",
                          .target = target,
                          .timeout_ms = 60'000,
                          .tls = std::move(tls)};
      if (!body.empty()) request.body = std::make_shared<const std::string>(body);
      loop.call(std::move(request), {.head = [](const Response&) {},
                                     .body = [&](std::string_view piece) { answer += piece; },
                                     .end = [&](Result<> result) { ended.set_value(std::move(result)); }});
    });
    const Result<> result = ended.get_future().get();
    return result ? answer : result.error().message;
  }
  AsyncClient client_of(const ClientTlsOptions& options) {
    return AsyncClient({.tls = client_tls_context(options).value()});
  }

  ScratchDirectory folder_;
  const std::string certfile_ = folder_.path() / "cert.pem", keyfile_ = folder_.path() / "key.pem";
  std::unique_ptr<Server> server_;
};

TEST_F(AsyncClientTlsTest, LongRequestsAndStreamsOnOneConnection) {
  serve({.certfile = certfile_, .keyfile = keyfile_});
  AsyncClient client = client_of({.ca_files = {certfile_}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call(client, "/x", std::string(300'000, 'b')), "/x" + std::string(300'000, 'b'));
    EXPECT_EQ(std::ranges::count(call(client, "/stream"), 'z'), 3000);
    EXPECT_EQ(server_->connections(), 1U);
  }
}

TEST_F(AsyncClientTlsTest, AServerThatNobodyVouchesForIsNotTold) {
  serve({.certfile = certfile_, .keyfile = keyfile_});
  AsyncClient client = client_of({});
  EXPECT_THAT(call(client, "/x"), HasSubstr("the server's certificate is not trusted"));
}

TEST_F(AsyncClientTlsTest, ACallMayTrustAnyCertificate) {
  serve({.certfile = certfile_, .keyfile = keyfile_});
  AsyncClient client = client_of({});
  const auto any = client_tls_context({.verify = false}).value();
  EXPECT_EQ(call(client, "/x", "", any), "/x");
  EXPECT_THAT(call(client, "/x"), HasSubstr("the server's certificate is not trusted"))
      << "calls with different contexts share no connection";
}

TEST_F(AsyncClientTlsTest, ShowsItsOwnCertificate) {
  serve({.certfile = certfile_, .keyfile = keyfile_, .ca_certs = certfile_, .cert_reqs = 2});
  AsyncClient with = client_of({.ca_files = {certfile_}, .certfile = certfile_, .keyfile = keyfile_});
  EXPECT_EQ(call(with, "/x"), "/x");
  AsyncClient without = client_of({.ca_files = {certfile_}});
  EXPECT_THAT(call(without, "/x"), HasSubstr("no answer"));
}

TEST_F(AsyncClientTlsTest, AConnectionThatTheServerHasClosedIsMadeAnew) {
  const std::pair<Socket, int> port = reserve_port().value();  // stays free while the server is away
  const TlsOptions tls{.certfile = certfile_, .keyfile = keyfile_};
  serve(tls, port.second);
  AsyncClient client = client_of({.ca_files = {certfile_}});
  EXPECT_EQ(call(client, "/x"), "/x");
  server_.reset();
  serve(tls, port.second);
  EXPECT_EQ(call(client, "/again"), "/again");
}

TEST_F(AsyncClientTlsTest, WrongFilesNameTheirFlag) {
  const auto field = [](const ClientTlsOptions& options) {
    const auto context = client_tls_context(options);
    return context ? "none" : context.error().field;
  };
  EXPECT_EQ(field({.ca_files = {"/nowhere"}}), "ca-cert-paths");
  EXPECT_EQ(field({.certfile = "/nowhere"}), "client-cert-path");
  EXPECT_EQ(field({.keyfile = keyfile_}), "client-cert-path");
  EXPECT_EQ(field({.certfile = certfile_, .keyfile = certfile_}), "client-key-path");
}

}  // namespace
}  // namespace octavo::http
