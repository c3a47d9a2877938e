#include "http/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>

#include <array>
#include <limits>
#include <string_view>

#include "base/check.h"
#include "http/tls.h"

namespace octavo::http {

TlsSession::TlsSession(std::shared_ptr<SSL_CTX> context)
    : context_(std::move(context)), ssl_(SSL_new(context_.get())) {
  CHECK(ssl_ != nullptr);
  SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

std::unique_ptr<TlsSession> TlsSession::of_server(std::shared_ptr<SSL_CTX> context) {
  std::unique_ptr<TlsSession> session(new TlsSession(std::move(context)));
  SSL_set_accept_state(session->ssl_);
  return session;
}

std::unique_ptr<TlsSession> TlsSession::of_client(std::shared_ptr<SSL_CTX> context, const std::string& host) {
  std::unique_ptr<TlsSession> session(new TlsSession(std::move(context)));
  expect_host(session->ssl_, host);
  SSL_set_connect_state(session->ssl_);
  ERR_clear_error();
  SSL_do_handshake(session->ssl_);
  return session;
}

bool TlsSession::handshake_done() const { return SSL_is_init_finished(ssl_) == 1; }
bool TlsSession::ended() const { return (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }

bool TlsSession::open(std::span<const char> received, std::string& plain) {
  ERR_clear_error();
  BIO_write(SSL_get_rbio(ssl_), received.data(), static_cast<int>(received.size()));
  std::array<char, 16384> record;
  for (;;) {
    const int count = SSL_read(ssl_, record.data(), static_cast<int>(record.size()));
    if (count > 0) {
      plain.append(record.data(), static_cast<std::size_t>(count));
      continue;
    }
    if (SSL_get_error(ssl_, count) == SSL_ERROR_WANT_READ) return true;
    got_plain_http_ = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST;
    wrong_ = tls_error(ssl_);
    return false;
  }
}

void TlsSession::seal(std::string& bytes) {
  early_ += bytes;
  bytes.clear();
  ERR_clear_error();
  if (handshake_done() && !early_.empty()) {
    for (std::string_view rest = early_; !rest.empty();) {
      const std::size_t most = std::min<std::size_t>(rest.size(), std::numeric_limits<int>::max());
      const int count = SSL_write(ssl_, rest.data(), static_cast<int>(most));
      if (count <= 0) break;  // the peer accepts no more bytes
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    std::string().swap(early_);
  }
  BIO* out = SSL_get_wbio(ssl_);
  bytes.resize(BIO_ctrl_pending(out));
  if (!bytes.empty()) BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
}

bool TlsSession::has_pending() const {
  return BIO_ctrl_pending(SSL_get_wbio(ssl_)) > 0 || (handshake_done() && !early_.empty());
}

void TlsSession::close() {
  ERR_clear_error();
  if (handshake_done()) SSL_shutdown(ssl_);
}

std::string TlsSession::wrong() const { return wrong_; }

bool TlsSession::trusted() const { return SSL_get_verify_result(ssl_) == X509_V_OK; }

}  // namespace octavo::http
