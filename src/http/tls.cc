#include "http/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace octavo::http {
namespace {

constexpr std::size_t kMostAtOnce = std::numeric_limits<int>::max();

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored;
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Context new_context() {
  Context made(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  CHECK(made != nullptr);
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(made.get(), SSL_VERIFY_PEER, nullptr);
  return made;
}

// All connections share one context, because loading the system's certificates is slow.
SSL_CTX* shared_context() {
  static SSL_CTX* const context = [] {
    Context made = new_context();
    SSL_CTX_set_default_verify_paths(made.get());
    return made.release();
  }();
  return context;
}

}  // namespace

Result<std::shared_ptr<SSL_CTX>> client_tls_context(const ClientTlsOptions& options) {
  const std::shared_ptr<SSL_CTX> context(new_context().release(), SSL_CTX_free);
  SSL_CTX* c = context.get();
  ERR_clear_error();
  if (!options.verify) SSL_CTX_set_verify(c, SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_default_verify_paths(c);
  for (const std::string& file : options.ca_files)
    if (SSL_CTX_load_verify_file(c, file.c_str()) != 1) return wrong_tls_file("ca-cert-paths", file);
  if (options.certfile.empty() && !options.keyfile.empty())
    return invalid("client-cert-path", "must be given with client-key-path");
  if (!options.certfile.empty())
    TRY_VOID(use_certificate(c, options.certfile, options.keyfile, "client-cert-path", "client-key-path"));
  return context;
}

Result<> use_certificate(SSL_CTX* context, const std::string& certfile, const std::string& keyfile,
                         std::string_view cert_field, std::string_view key_field) {
  if (SSL_CTX_use_certificate_chain_file(context, certfile.c_str()) != 1)
    return wrong_tls_file(cert_field, certfile);
  const std::string& key = keyfile.empty() ? certfile : keyfile;
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return wrong_tls_file(key_field, key);
  return {};
}

std::unexpected<Error> wrong_tls_file(std::string_view field, const std::string& file) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return field_failure(field, ErrorCode::invalid_argument, "{}: {}", file,
                       reason != nullptr ? reason : "it cannot be read");
}

void expect_host(SSL* ssl, const std::string& host) {
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
  } else {
    SSL_set1_host(ssl, host.c_str());
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
}

std::string tls_error(SSL* ssl) {
  if (const long wrong = SSL_get_verify_result(ssl); wrong != X509_V_OK)
    return fmt::format("its certificate is not to be trusted: {} (SSL_CERT_FILE names certificates that are)",
                       X509_verify_cert_error_string(wrong));
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "the connection was closed";
}

struct Tls::State {
  explicit State(SSL_CTX* context) : ssl(SSL_new(context)) {}
  SSL* const ssl;
  ~State() { SSL_free(ssl); }

  std::unexpected<Error> broken(std::string_view what, int result) const {
    const int system = errno;
    const int kind = SSL_get_error(ssl, result);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
      return failure(ErrorCode::io, "{}: timed out", what);
    const char* reason = ERR_reason_error_string(ERR_get_error());
    if (reason == nullptr) reason = system != 0 ? std::strerror(system) : "the connection was closed";
    return failure(ErrorCode::io, "{}: {}", what, reason);
  }
};

Tls::Tls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tls::Tls(Tls&&) noexcept = default;
Tls& Tls::operator=(Tls&&) noexcept = default;
Tls::~Tls() = default;

Result<Tls> Tls::start(int socket, const std::string& host, const std::string& ca_file) {
  Context own(nullptr, &SSL_CTX_free);
  if (!ca_file.empty()) {
    own = new_context();
    if (SSL_CTX_load_verify_file(own.get(), ca_file.c_str()) != 1)
      return failure(ErrorCode::io, "no certificates can be read from {}", ca_file);
  }
  auto state = std::make_unique<State>(own ? own.get() : shared_context());
  SSL* ssl = state->ssl;
  CHECK(ssl != nullptr);
  expect_host(ssl, host);
  SSL_set_fd(ssl, socket);
  ERR_clear_error();
  errno = 0;
  if (const int result = SSL_connect(ssl); result != 1) {
    if (const long wrong = SSL_get_verify_result(ssl); wrong != X509_V_OK)
      return field_failure(
          "host", ErrorCode::invalid_argument,
          "the certificate of {} is not to be trusted: {} (SSL_CERT_FILE names certificates that are)", host,
          X509_verify_cert_error_string(wrong));
    return state->broken(fmt::format("no TLS connection to {}", host), result);
  }
  return Tls(std::move(state));
}

bool Tls::pending() const { return SSL_pending(state_->ssl) > 0; }

Result<std::size_t> Tls::receive(std::span<char> into) {
  const int most = static_cast<int>(std::min(into.size(), kMostAtOnce));
  for (;;) {
    ERR_clear_error();
    errno = 0;
    const int count = SSL_read(state_->ssl, into.data(), most);
    if (count > 0) return static_cast<std::size_t>(count);
    if (SSL_get_error(state_->ssl, count) == SSL_ERROR_ZERO_RETURN) return std::size_t{0};
    if (errno != EINTR) return state_->broken("cannot receive", count);
  }
}

Result<> Tls::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const int most = static_cast<int>(std::min(bytes.size(), kMostAtOnce));
    ERR_clear_error();
    errno = 0;
    const int count = SSL_write(state_->ssl, bytes.data(), most);
    if (count > 0)
      bytes.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      return state_->broken("cannot send", count);
  }
  return {};
}

}  // namespace octavo::http
