// One TLS connection without a socket: converts between received or sent bytes and plain bytes, so that event
// loops need no change.
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
  // Begins the handshake: seal() returns its first message. The server must prove that it is `host`.
  static std::unique_ptr<TlsSession> of_client(std::shared_ptr<SSL_CTX> context, const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Decrypts received bytes and appends the plain bytes. False: send what seal() returns, then close the
  // connection.
  bool open(std::span<const char> received, std::string& plain);
  bool handshake_done() const;
  bool ended() const;  // the peer has sent its last byte
  // Replaces plain bytes by the bytes to send: protocol messages, and the encrypted data once the handshake
  // is done. Earlier plain bytes are kept until then.
  void seal(std::string& bytes);
  bool has_pending() const;   // seal() of no bytes would return some
  void close();               // announces the end to the peer; seal() has the message
  std::string wrong() const;  // after open() returned false: a short reason

 private:
  explicit TlsSession(std::shared_ptr<SSL_CTX> context);

  std::shared_ptr<SSL_CTX> context_;
  SSL* ssl_;
  std::string early_;  // plain bytes from before the end of the handshake
  std::string wrong_;
};

}  // namespace octavo::http
