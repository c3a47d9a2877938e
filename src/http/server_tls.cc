#include "http/server_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/self_signed.h"
#include "http/tls.h"

namespace octavo::http {
namespace {

constexpr std::int64_t kLookUs = 1'000'000;

// ALPN names with length prefixes (RFC 7301).
constexpr std::string_view kHttp1 = "\x08http/1.1", kHttp2 = "\x02h2";

// spoken: the only protocol that the server offers.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void* spoken) {
  const auto& name = *static_cast<const std::string_view*>(spoken);
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, size, reinterpret_cast<const unsigned char*>(name.data()),
                                          static_cast<unsigned int>(name.size()), offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

void use_self_signed(SSL_CTX* context) {
  const SelfSigned made = make_self_signed("octavo", "DNS:localhost,IP:127.0.0.1");
  const auto reader = [](const std::string& text) {
    return std::unique_ptr<BIO, decltype(&BIO_free)>(
        BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
  };
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(reader(made.certificate).get(), nullptr, nullptr, nullptr), X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(reader(made.key).get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  CHECK(SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
        SSL_CTX_use_PrivateKey(context, key.get()) == 1);
}

Result<std::shared_ptr<SSL_CTX>> make_context(const TlsOptions& options) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  CHECK(context != nullptr);
  SSL_CTX* c = context.get();
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);  // idle connections have no buffers
  SSL_CTX_set_alpn_select_cb(c, choose_protocol,
                             const_cast<std::string_view*>(options.http2 ? &kHttp2 : &kHttp1));
  if (options.self_signed)
    use_self_signed(c);
  else
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
  // Turns session resumption off. With client certificates, it would need a session id context.
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
        log_info("TLS certificate reloaded");
      } else {
        log_error("cannot reload the TLS certificate, keeping the old one: {}: {}", fresh.error().field,
                  fresh.error().message);
      }
    }
  }
  return TlsSession::of_server(context_);
}

}  // namespace octavo::http
