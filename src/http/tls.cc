#include "http/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <system_error>

#include "base/check.h"

namespace octavo::http {
namespace {

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> ignored;
  return ::inet_pton(AF_INET, host.c_str(), ignored.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), ignored.data()) == 1;
}

}  // namespace

const std::shared_ptr<SSL_CTX>& system_tls_context() {
  static const std::shared_ptr<SSL_CTX> context = client_tls_context({}).value();
  return context;
}

Result<std::shared_ptr<SSL_CTX>> client_tls_context(const ClientTlsOptions& options) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX* c = context.get();
  CHECK(c != nullptr);
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_verify(c, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
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
  const unsigned long first = ERR_peek_error(), last = ERR_peek_last_error();
  ERR_clear_error();
  // The first error says why a file cannot be opened; the last one only says that the system refused it.
  if (ERR_SYSTEM_ERROR(first))
    return field_failure(field, ErrorCode::invalid_argument, "{}: {}", file,
                         std::system_category().message(ERR_GET_REASON(first)));
  const char* reason = ERR_reason_error_string(last);
  return field_failure(field, ErrorCode::invalid_argument, "{}: {}", file,
                       reason != nullptr ? reason : "the file cannot be read");
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
    return fmt::format(
        "the server's certificate is not trusted: {} (SSL_CERT_FILE names a file of trusted certificates)",
        X509_verify_cert_error_string(wrong));
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason != nullptr ? reason : "the connection was closed";
}

}  // namespace octavo::http
