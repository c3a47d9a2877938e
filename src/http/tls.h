// TLS for clients, and loading of certificate files for clients and servers. Clients trust the system's
// certificates, or those of SSL_CERT_FILE and SSL_CERT_DIR, as all programs with OpenSSL do.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/tls_session.h"

namespace octavo::http {

struct ClientTlsOptions {
  // PEM files of authorities that are trusted in addition to the system's.
  std::vector<std::string> ca_files{};
  // PEM: certificate of the client; "": no certificate
  std::string certfile{};
  std::string keyfile{};  // PEM: private key; "": the key is in certfile
  bool verify = true;     // false: accepts any server certificate
};

// Context for clients without options. All of them share it, because loading the system's certificates is
// slow.
const std::shared_ptr<SSL_CTX>& system_tls_context();
// Returns an error on "ca-cert-paths", "client-cert-path" or "client-key-path" if a file cannot be read or
// a key does not fit.
Result<std::shared_ptr<SSL_CTX>> client_tls_context(const ClientTlsOptions& options);

void expect_host(SSL* ssl, const std::string& host);
// Loads a certificate chain and its private key. keyfile "": the key is in certfile. Returns an error on
// the field if a file cannot be read or the key does not fit.
Result<> use_certificate(SSL_CTX* context, const std::string& certfile, const std::string& keyfile,
                         std::string_view cert_field, std::string_view key_field);
// Makes an error on `field` from OpenSSL's last error. file: path, or text for the message.
std::unexpected<Error> wrong_tls_file(std::string_view field, const std::string& file);
// Returns a short reason for a failed call: an untrusted certificate, OpenSSL's last error, or a closed
// connection.
std::string tls_error(SSL* ssl);

}  // namespace octavo::http
