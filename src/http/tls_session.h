// One TLS connection that knows no socket: it turns what one brings into plain bytes and back, so that event
// loops stay as they are.
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
  // Begins the handshake: seal() has its first message. The server must prove that it is `host`.
  static std::unique_ptr<TlsSession> of_client(std::shared_ptr<SSL_CTX> context, const std::string& host);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // What the socket has brought; appends the plain bytes in it. False: the connection is to be closed, when
  // what seal() still has is sent.
  bool open(std::span<const char> received, std::string& plain);
  bool handshake_done() const;
  bool ended() const;  // the peer has said that nothing follows
  // Replaces plain bytes by what is to be sent: them, once the handshake is done, and what the protocol
  // itself has to say. Plain bytes from before that are kept and come later.
  void seal(std::string& bytes);
  bool has_pending() const;   // seal() of nothing would bring something
  void close();               // tells the peer that nothing follows; seal() has it
  std::string wrong() const;  // after open() gave false: why, in a few words

 private:
  explicit TlsSession(std::shared_ptr<SSL_CTX> context);

  std::shared_ptr<SSL_CTX> context_;
  SSL* ssl_;
  std::string early_;  // plain bytes before the handshake is done
  std::string wrong_;
};

}  // namespace octavo::http
