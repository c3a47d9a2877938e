#include "http/server_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/tls.h"

namespace octavo::http {
namespace {

constexpr std::int64_t kLookUs = 1'000'000;

// Of HTTP there is 1.1.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
  static constexpr unsigned char kHttp[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, size, kHttp, sizeof kHttp - 1, offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

Result<std::shared_ptr<SSL_CTX>> make_context(const TlsOptions& options) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  CHECK(context != nullptr);
  SSL_CTX* c = context.get();
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);  // an idle connection holds none
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, nullptr);
  TRY_VOID(use_certificate(c, options.certfile, options.keyfile, "ssl-certfile", "ssl-keyfile"));
  if (!options.ciphers.empty() && SSL_CTX_set_cipher_list(c, options.ciphers.c_str()) != 1)
    return wrong_tls_file("ssl-ciphers", options.ciphers);
  if (!options.ca_certs.empty()) {
    if (SSL_CTX_load_verify_file(c, options.ca_certs.c_str()) != 1)
      return wrong_tls_file("ssl-ca-certs", options.ca_certs);
    SSL_CTX_set_client_CA_list(c, SSL_load_client_CA_file(options.ca_certs.c_str()));
  }
  int verify = SSL_VERIFY_NONE;
  if (options.cert_reqs > 0) verify |= SSL_VERIFY_PEER;
  if (options.cert_reqs > 1) verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  SSL_CTX_set_verify(c, verify, nullptr);
  // Sessions that are resumed would need a name of their own where clients are verified.
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(c, 0);
  return context;
}

}  // namespace

Result<std::unique_ptr<ServerTls>> ServerTls::load(TlsOptions options) {
  std::unique_ptr<ServerTls> tls(new ServerTls(std::move(options)));
  tls->written_ = tls->written();
  tls->looked_us_ = now_us();
  TRY(tls->context_, make_context(tls->options_));
  return tls;
}

ServerTls::Written ServerTls::written() const {
  const auto when = [](const std::string& file) {
    std::error_code missing;
    return std::filesystem::last_write_time(file, missing);
  };
  return {when(options_.certfile), when(options_.keyfile), when(options_.ca_certs)};
}

std::unique_ptr<TlsSession> ServerTls::session() {
  const std::lock_guard lock(mutex_);
  if (options_.refresh && now_us() - looked_us_ > kLookUs) {
    looked_us_ = now_us();
    if (const Written now = written(); now != written_) {
      written_ = now;
      if (auto fresh = make_context(options_)) {
        context_ = *std::move(fresh);
        log_info("the TLS certificate was read again");
      } else {
        log_error("the TLS certificate stays the old one: {}: {}", fresh.error().field,
                  fresh.error().message);
      }
    }
  }
  return TlsSession::of_server(context_);
}

}  // namespace octavo::http
