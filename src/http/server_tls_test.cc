#include "http/server_tls.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/testing/scratch_directory.h"
#include "http/client.h"
#include "http/server.h"
#include "http/testing/certificate.h"
#include "http/tls.h"

namespace octavo::http {
namespace {

using ::testing::HasSubstr;

class ServerTlsTest : public ::testing::Test {
 protected:
  ServerTlsTest() {
    write_certificate(certfile_, keyfile_, "first");
    options_.tls.certfile = certfile_;
    options_.tls.keyfile = keyfile_;
  }
  void serve() {
    auto started = Server::start(options_, [](const std::shared_ptr<Exchange>& exchange) {
      const Request& request = exchange->request();
      if (request.path != "/stream")
        return exchange->respond(
            {.content_type = "text/plain", .body = request.path + request.peer + request.body});
      exchange->start_stream({.content_type = "text/plain"});
      for (int i = 0; i < 100; ++i) exchange->write(std::string(1000, static_cast<char>('a' + i % 26)));
      exchange->finish();
    });
    ASSERT_TRUE(started) << started.error().message;
    server_ = *std::move(started);
  }

  // Sends a GET request with OpenSSL, with or without a client certificate. Returns "" if the server closes
  // the connection.
  std::string get(const std::string& path, const char* own_certificate = nullptr,
                  std::string* subject = nullptr) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                    SSL_CTX_free);
    if (own_certificate != nullptr) {
      SSL_CTX_use_certificate_file(context.get(), own_certificate, SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context.get(), keyfile_.c_str(), SSL_FILETYPE_PEM);
    }
    const int socket = connect_to_server();
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
    SSL_set_fd(ssl.get(), socket);
    std::string all;
    if (SSL_connect(ssl.get()) == 1) {
      if (subject != nullptr) {
        X509* x = SSL_get1_peer_certificate(ssl.get());
        char text[256];
        *subject = X509_NAME_oneline(X509_get_subject_name(x), text, sizeof text);
        X509_free(x);
      }
      const std::string request = "GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
      char piece[4096];
      for (int count; (count = SSL_read(ssl.get(), piece, sizeof piece)) > 0;)
        all.append(piece, static_cast<std::size_t>(count));
      ended_well_ = SSL_get_shutdown(ssl.get()) == SSL_RECEIVED_SHUTDOWN;
    }
    ::close(socket);
    return all;
  }
  int connect_to_server() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  ScratchDirectory folder_;
  const std::string certfile_ = folder_.path() / "cert.pem", keyfile_ = folder_.path() / "key.pem";
  ServerOptions options_;
  std::unique_ptr<Server> server_;
  bool ended_well_ = false;
};

TEST_F(ServerTlsTest, OurOwnClientTrustsTheCertificateAndIsAnswered) {
  serve();
  ::setenv("SSL_CERT_FILE", certfile_.c_str(), 1);
  auto client = Client::connect({.port = server_->port(),
                                 .tls = true,
                                 .tls_context = client_tls_context({}).value(),
                                 .timeout_ms = 60'000});
  ASSERT_TRUE(client) << client.error().message;
  for (int i = 0; i < 3; ++i) {  // on one connection
    const auto answer = client->request("POST", "/x", std::string(300'000, 'b'));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "/x127.0.0.1" + std::string(300'000, 'b'));
  }
}

TEST_F(ServerTlsTest, AClientMayTrustAFileOfItsOwn) {
  serve();
  const auto untrusted = Client::connect({.port = server_->port(),
                                          .tls = true,
                                          .tls_context = client_tls_context({}).value(),
                                          .timeout_ms = 60'000});
  ASSERT_FALSE(untrusted);
  EXPECT_EQ(untrusted.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(untrusted.error().message, HasSubstr("is not trusted"));
  auto client = Client::connect({.port = server_->port(),
                                 .tls = true,
                                 .tls_context = client_tls_context({.ca_files = {certfile_}}).value(),
                                 .timeout_ms = 60'000});
  ASSERT_TRUE(client) << client.error().message;
  ASSERT_TRUE(client->open("GET", "/stream"));
  std::size_t bytes = 0;
  for (;;) {
    const auto piece = client->read_for(10'000);
    ASSERT_TRUE(piece) << piece.error().message;
    if (!*piece) break;
    bytes += (*piece)->size();
  }
  EXPECT_EQ(bytes, 100'000U);
}

TEST_F(ServerTlsTest, StreamsArriveWholeAndEndWell) {
  serve();
  const std::string all = get("/stream");
  EXPECT_EQ(std::ranges::count(all, 'z'), 3000);
  EXPECT_TRUE(all.ends_with("0\r\n\r\n"));
  EXPECT_TRUE(ended_well_);
}

TEST_F(ServerTlsTest, ClientsMustShowACertificateWhereThatIsAsked) {
  options_.tls.ca_certs = certfile_;
  options_.tls.cert_reqs = 2;
  serve();
  EXPECT_EQ(get("/without"), "");
  EXPECT_THAT(get("/with", certfile_.c_str()), HasSubstr("/with"));
}

TEST_F(ServerTlsTest, AHandshakeThatStopsIsEnded) {
  options_.header_ms_max = 100;
  serve();
  const int socket = connect_to_server();
  char byte = 0;
  EXPECT_EQ(::recv(socket, &byte, 1, 0), 0);
  ::close(socket);
}

TEST_F(ServerTlsTest, NewFilesAreReadAgain) {
  options_.tls.refresh = true;
  serve();
  std::string subject;
  get("/", nullptr, &subject);
  EXPECT_EQ(subject, "/CN=first");
  std::ofstream(certfile_) << "half a file";
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  get("/", nullptr, &subject);
  EXPECT_EQ(subject, "/CN=first");
  write_certificate(certfile_, keyfile_, "second");
  for (int i = 0; i < 600 && subject == "/CN=first"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    get("/", nullptr, &subject);
  }
  EXPECT_EQ(subject, "/CN=second");
}

TEST_F(ServerTlsTest, WrongFilesNameTheirFlag) {
  const auto field = [&] {
    const auto started = Server::start(options_, [](const auto&) {});
    return started ? "none" : started.error().field;
  };
  options_.tls.ciphers = "NO-SUCH-CIPHER";
  EXPECT_EQ(field(), "ssl-ciphers");
  options_.tls.ca_certs = "/nowhere";
  options_.tls.ciphers = "";
  EXPECT_EQ(field(), "ssl-ca-certs");
  write_certificate(folder_.path() / "other.pem", keyfile_, "other");
  EXPECT_EQ(field(), "ssl-keyfile");
  for (const char* missing : {"/nowhere", ""}) {
    options_.tls.certfile = missing;
    EXPECT_EQ(field(), "ssl-certfile");
  }
  options_.tls.certfile = "/nowhere";
  EXPECT_EQ(Server::start(options_, [](const auto&) {}).error().message,
            "/nowhere: No such file or directory");
}

TEST_F(ServerTlsTest, ARequestWithoutTlsIsAnsweredWithTheReason) {
  serve();
  for (const char* method : {"GET", "POST"}) {
    auto client = Client::connect({.port = server_->port(), .timeout_ms = 60'000});
    ASSERT_TRUE(client) << client.error().message;
    const auto answer = client->request(method, "/x", std::string(300'000, 'b'));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 400);
    EXPECT_THAT(answer->body, HasSubstr("use https://"));
  }
  EXPECT_THAT(get("/x"), HasSubstr("/x"));
}

// Returns everything that the server sends over a Unix socket.
std::string get_over(const std::string& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  std::string all;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string_view request = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    EXPECT_GT(::send(socket, request.data(), request.size(), 0), 0);
    char piece[4096];
    for (ssize_t count; (count = ::recv(socket, piece, sizeof piece, 0)) > 0;)
      all.append(piece, static_cast<std::size_t>(count));
  }
  ::close(socket);
  return all;
}

TEST_F(ServerTlsTest, AUnixSocketServesHttp) {
  options_.tls = {};
  options_.uds = folder_.path() / "socket";
  serve();
  EXPECT_THAT(get_over(options_.uds), HasSubstr("/x"));
  const auto second = Server::start(options_, [](const auto&) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().field, "uds");
  EXPECT_THAT(second.error().message, HasSubstr("another server"));
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(options_.uds));
  // A stale socket file is replaced.
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  options_.uds.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  serve();
  EXPECT_THAT(get_over(options_.uds), HasSubstr("/x"));
  server_.reset();
  options_.uds = std::string(200, 'x');
  EXPECT_EQ(Server::start(options_, [](const auto&) {}).error().field, "uds");
}

}  // namespace
}  // namespace octavo::http
