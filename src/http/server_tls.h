// TLS for the server's connections, with certificates from files.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "base/error.h"
#include "http/tls_session.h"

namespace octavo::http {

// Names and meanings are those of vLLM's (uvicorn's) --ssl-* flags.
struct TlsOptions {
  std::string certfile{};    // PEM: the server's certificate chain; "": no TLS
  std::string keyfile{};     // PEM: the certificate's private key; "": the key is in certfile
  std::string ca_certs{};    // PEM: authorities whose client certificates are accepted
  int cert_reqs = 0;         // client certificates: 0 not requested, 1 checked if sent, 2 required
  std::string ciphers{};     // OpenSSL's cipher list for TLS 1.2; "": OpenSSL's default
  bool refresh = false;      // reload the files when they change
  bool self_signed = false;  // use a new self-signed certificate instead of the files
  bool http2 = false;        // offer HTTP/2 instead of HTTP/1.1

  bool enabled() const { return !certfile.empty(); }
};

// The current certificates. Safe from any thread.
class ServerTls {
 public:
  // Errors name the flag: an unreadable file, a key that does not match the certificate, an unknown cipher.
  static Result<std::unique_ptr<ServerTls>> load(TlsOptions options);

  // Starts a session. With `refresh`, first reloads changed files, at most once per second. If the new files
  // are invalid, logs it and keeps the old certificates.
  std::unique_ptr<TlsSession> session();

 private:
  explicit ServerTls(TlsOptions options) : options_(std::move(options)) {}
  // Modification times of the three files.
  using Written = std::array<std::filesystem::file_time_type, 3>;
  Written written() const;

  const TlsOptions options_;
  std::mutex mutex_;
  std::shared_ptr<SSL_CTX> context_;
  Written written_{};
  std::int64_t looked_us_ = 0;
};

}  // namespace octavo::http
