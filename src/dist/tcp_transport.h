// Ranks that are connected over TCP. They meet at rank 0's address. Each rank sends its number and its
// listening address, receives the addresses of the others, and connects to the ranks before it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dist/tcp_socket.h"
#include "dist/transport.h"

namespace octavo {

struct TcpRanks {
  int rank = 0;
  int size = 1;
  std::string address;  // address of rank 0
  int port = 0;
  // Ranks with different texts do not belong together. The text describes the computation and its partition.
  std::string identity = {};
  // How long to wait for the others; 0: unlimited.
  int patience_s = 0;
  // Called several times a second while waiting; an error ends the wait. May be empty.
  std::function<Result<>()> check = {};
};

class TcpTransport final : public Transport {
 public:
  // Waits until all ranks are connected, and logs at intervals. Errors: io; invalid_argument if rank 0 has
  // another computation or partition; unavailable after patience_s; those of check.
  static Result<std::unique_ptr<TcpTransport>> meet(const TcpRanks& ranks);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  Result<> exchange(std::span<const Send> sends, std::span<const Receive> receives, int timeout_ms) override;
  Result<> check() const override;

  // True if a rank has sent something that exchange() has not returned, or has closed its connection.
  bool has_arrivals() const;
  // The connections to the other ranks.
  std::vector<int> sockets() const;

 private:
  struct Peer {
    Socket socket;                     // none: this rank's own
    std::vector<std::byte> kept = {};  // received before it was requested
    std::size_t taken = 0;             // of it
    bool ended = false;                // the connection has ended
    // Remaining part of the current exchange.
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
