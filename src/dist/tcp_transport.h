// Ranks that are connected with each other over TCP. They meet at rank 0's address: each says who it is and
// where it listens, learns where the others do, and connects to those before it.
#pragma once

#include <string>
#include <vector>

#include "dist/tcp_socket.h"
#include "dist/transport.h"

namespace octavo {

struct TcpRanks {
  int rank = 0;
  int size = 1;
  std::string address;  // of rank 0
  int port = 0;
  // Ranks of another text do not belong together: what is computed, and how it is split.
  std::string identity = {};
};

class TcpTransport final : public Transport {
 public:
  // Waits until all ranks are there, with a line in the log now and then. Errors: io; invalid_argument when
  // rank 0 does something else or is split otherwise.
  static Result<std::unique_ptr<TcpTransport>> meet(const TcpRanks& ranks);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  Result<> exchange(std::span<const Send> sends, std::span<const Receive> receives, int timeout_ms) override;
  Result<> check() const override;

 private:
  struct Peer {
    Socket socket;                     // none: this rank's own
    std::vector<std::byte> kept = {};  // what has come and was not asked for
    std::size_t taken = 0;             // of it
    bool ended = false;                // nothing more will come
    // Of the exchange that runs: what is left of it.
    std::span<const std::byte> out = {};
    std::span<std::byte> in = {};
  };

  explicit TcpTransport(int rank, std::vector<Socket> sockets);
  Result<> send_some(Peer& peer, int rank);
  Result<> receive_some(Peer& peer, int rank);

  int rank_ = 0;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace octavo
