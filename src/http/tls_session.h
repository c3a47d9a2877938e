// One TLS connection without a socket. It decrypts received bytes and encrypts bytes to send, so event
// loops need no separate code for TLS.
#pragma once

#include <memory>
#include <span>
#include <string>

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace octavo::http {

class TlsSession {
 public:
  static std::unique_ptr<TlsSession> of_server(std::shared_ptr<SSL_CTX> context);
  // Begins the handshake; the next seal() returns its first message. The server's certificate must be valid
  // for `host`.
  static std::unique_ptr<TlsSession> of_client(std::shared_ptr<SSL_CTX> context, const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Decrypts received bytes and appends the plain bytes. After false, the caller sends the bytes of seal(),
  // then closes the connection.
  bool open(std::span<const char> received, std::string& plain);
  bool handshake_done() const;
  bool ended() const;  // the peer has sent its last byte
  // Replaces plain bytes with the bytes to send: handshake messages, then encrypted data. Until the
  // handshake is done, the session keeps the plain bytes.
  void seal(std::string& bytes);
  bool has_pending() const;   // seal() without plain bytes would return bytes to send
  void close();               // prepares the closing message, which the next seal() returns
  std::string wrong() const;  // short reason why open() returned false
  bool trusted() const;       // false if the handshake found an untrusted certificate

 private:
  explicit TlsSession(std::shared_ptr<SSL_CTX> context);

  std::shared_ptr<SSL_CTX> context_;
  SSL* ssl_;
  std::string early_;  // plain bytes that seal() received before the handshake was done
  std::string wrong_;
};

}  // namespace octavo::http
