// TLS for servers, with certificates from files.
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

// The fields equal vLLM's (uvicorn's) --ssl-* flags.
struct TlsOptions {
  std::string certfile{};  // PEM: certificate chain of the server; "": no TLS
  std::string keyfile{};   // PEM: private key; "": the key is in certfile
  // PEM: authorities for client certificates
  std::string ca_certs{};
  // client certificates: 0 not requested, 1 verified if sent, 2 required
  int cert_reqs = 0;
  // OpenSSL's cipher list for TLS 1.2; "": default
  std::string ciphers{};
  bool refresh = false;  // whether to reload changed files
  // whether to make a self-signed certificate instead of reading the files
  bool self_signed = false;
  bool http2 = false;

  bool enabled() const { return !certfile.empty(); }
};

// The server's current certificates. Thread-safe.
class ServerTls {
 public:
  // Returns an error that names the flag if a file cannot be read, the key does not fit the certificate, or a
  // cipher is unknown.
  static Result<std::unique_ptr<ServerTls>> load(TlsOptions options);

  // Starts a TLS session. With `refresh`, first reloads changed files, at most once per second. If they are
  // invalid, it logs the error and keeps the old certificates.
  std::unique_ptr<TlsSession> session();

 private:
  explicit ServerTls(TlsOptions options) : options_(std::move(options)) {}
  // modification times of the three files
  using Written = std::array<std::filesystem::file_time_type, 3>;
  Written written() const;

  const TlsOptions options_;
  std::mutex mutex_;
  std::shared_ptr<SSL_CTX> context_;
  Written written_{};
  std::int64_t looked_us_ = 0;
};

}  // namespace octavo::http
