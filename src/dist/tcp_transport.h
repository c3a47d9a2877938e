// A transport between ranks over TCP. All ranks connect to rank 0's address. Each rank sends its number and
// its listening address, receives the addresses of the other ranks, and connects to the ranks with lower
// numbers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/tcp_socket.h"
#include "dist/transport.h"

namespace octavo {

struct TcpRanks {
  int rank = 0;
  int size = 1;
  std::string address;
  int port = 0;
  std::string_view address_flag = "master_addr";  // flag that sets the address, for errors
  // Description of the computation and its partition. Ranks with different descriptions reject each other.
  std::string identity = {};
  // Maximum time to wait for the other ranks, in seconds; 0: unlimited.
  int patience_s = 0;
  // Called several times a second during the wait; an error ends the wait. May be empty.
  std::function<Result<>()> check = {};
};

class TcpTransport final : public Transport {
 public:
  // Waits until all ranks are connected, and logs the wait at intervals. Returns io if a system call fails,
  // invalid_argument if rank 0 has another identity, unavailable after patience_s seconds, or the error of
  // `check`.
  static Result<std::unique_ptr<TcpTransport>> meet(const TcpRanks& ranks);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  Result<> exchange(std::span<const Send> sends, std::span<const Receive> receives, int timeout_ms) override;
  Result<> check() const override;

  // Returns true if a rank has sent a message that exchange() has not returned yet, or has closed its
  // connection.
  bool has_arrivals() const;
  std::vector<int> sockets() const;

 private:
  struct Peer {
    Socket socket;                     // empty for this rank itself
    std::vector<std::byte> kept = {};  // bytes that arrived before exchange() expected them
    std::size_t taken = 0;             // number of bytes of `kept` that exchange() has returned
    bool ended = false;
    // Bytes of the current exchange that still have to be sent or received.
    std::span<const std::byte> out = {};
    std::span<std::byte> in = {};
  };

  explicit TcpTransport(int rank, std::vector<Socket> sockets);
  Result<> send_some(Peer& peer, int rank);
  Result<> receive_some(Peer& peer, int rank);

  int rank_ = 0;
  std::vector<Peer> peers_;  // index: rank
};

}  // namespace octavo
