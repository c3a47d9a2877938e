#include "dist/tcp_meeting.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"

namespace octavo {
namespace {

constexpr std::uint64_t kMagic = 0x31304f5641544f43;  // also identifies the version of the messages
constexpr int kRetryMs = 200;                         // time between attempts to reach rank 0
constexpr int kLogMs = 10'000;                        // time between log lines

// First message of a rank to rank 0.
struct Hello {
  std::uint64_t magic = kMagic;
  Hash128 identity = {};
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t port = 0;
};

// Rank 0's response. It is sent when all ranks are connected, or immediately if the rank is rejected.
struct Welcome {
  std::int32_t accepted = 1;
  std::array<char, 252> why = {};
};

// Limits the wait for other ranks, and checks that the wait can still succeed.
class Patience {
 public:
  explicit Patience(const TcpRanks& ranks)
      : ranks_(ranks), ends_us_(now_us() + std::int64_t{ranks.patience_s} * 1'000'000) {}

  Result<> check() const {
    if (ranks_.check) TRY_VOID(ranks_.check());
    if (ranks_.patience_s == 0 || now_us() < ends_us_) return {};
    return failure(
        ErrorCode::unavailable,
        "rank {} of {} has waited {} s at {}:{} ({}) for the other ranks: start all of them within "
        "this time, with the address of rank 0",
        ranks_.rank, ranks_.size, ranks_.patience_s, ranks_.address, ranks_.port, ranks_.address_flag);
  }

 private:
  const TcpRanks& ranks_;
  const std::int64_t ends_us_;
};

bool is_closed(const Socket& socket) {
  pollfd readable{socket.fd(), POLLIN, 0};
  // If the connection is readable, the client has closed it: clients send nothing before they are accepted.
  return poll(&readable, 1, 0) != 0;
}

Hash128 identity_of(const TcpRanks& ranks) {
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(ranks.identity)), 0);
}

// Accepts the connections of the other ranks, on rank 0.
class Host {
 public:
  explicit Host(const TcpRanks& ranks)
      : ranks_(ranks), sockets_(static_cast<std::size_t>(ranks.size)), addresses_(sockets_.size()) {}

  Result<std::vector<Socket>> wait_for_all() {
    TRY(const TcpAddress own, resolve(ranks_.address_flag, ranks_.address, ranks_.port));
    const auto listener = listen_at(own);
    if (!listener)
      return failure(listener.error().code, "rank 0 at {} ({}): {}", ranks_.address, ranks_.address_flag,
                     listener.error().message);
    while (!all_connected()) {
      TRY_VOID(patience_.check());
      auto accepted = accept_from(*listener, kRetryMs);
      if (accepted) take(std::move(accepted->first), accepted->second);
      log_missing();
    }
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank)
      if (!write_value(sockets_[rank], Welcome{}) ||
          send(sockets_[rank].fd(), addresses_.data(), addresses_.size() * sizeof(TcpAddress), MSG_NOSIGNAL) <
              0)
        return failure(ErrorCode::unavailable, "rank {} has stopped before all ranks were connected", rank);
    return std::move(sockets_);
  }

 private:
  bool all_connected() {
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank) {
      if (sockets_[rank].fd() < 0) return false;
      if (is_closed(sockets_[rank])) {
        sockets_[rank] = Socket();
        return false;
      }
    }
    return true;
  }

  // Closes connections that send invalid messages. A known rank that connects again has restarted.
  void take(Socket socket, const TcpAddress& address) {
    Hello hello;
    if (!read_value(socket, hello) || hello.magic != kMagic) return;
    if (hello.size != ranks_.size || hello.rank < 1 || hello.rank >= ranks_.size ||
        hello.identity != identity_of(ranks_)) {
      Welcome no{.accepted = 0};
      fmt::format_to_n(no.why.begin(), no.why.size() - 1,
                       "rank {} of {} does not belong to the {} ranks here: start all ranks with the same "
                       "model and options",
                       hello.rank, hello.size, ranks_.size);
      write_value(socket, no);
      return;
    }
    const auto rank = static_cast<std::size_t>(hello.rank);
    sockets_[rank] = std::move(socket);
    addresses_[rank] = address.with_port(hello.port);
  }

  void log_missing() {
    if (now_us() < logged_us_ + std::int64_t{kLogMs} * 1000) return;
    logged_us_ = now_us();
    const auto missing = std::ranges::count_if(sockets_, [](const Socket& s) { return s.fd() < 0; }) - 1;
    if (missing > 0) log_info("waiting at port {} for {} of {} ranks", ranks_.port, missing, ranks_.size);
  }

  const TcpRanks& ranks_;
  const Patience patience_{ranks_};
  std::vector<Socket> sockets_;
  std::vector<TcpAddress> addresses_;
  std::int64_t logged_us_ = now_us();
};

// Connects to rank 0; retries until it is available.
Result<Socket> reach_rank_0(const TcpRanks& ranks, const Hello& hello, const Patience& patience) {
  TRY(const TcpAddress host, resolve(ranks.address_flag, ranks.address, ranks.port));
  for (std::int64_t logged_us = now_us();;) {
    TRY_VOID(patience.check());
    auto socket = connect_to(host);
    if (socket && write_value(*socket, hello)) return socket;
    if (now_us() > logged_us + std::int64_t{kLogMs} * 1000) {
      logged_us = now_us();
      log_info("rank {} waits for rank 0 at {}:{}: {}", ranks.rank, ranks.address, ranks.port,
               socket ? "no answer" : socket.error().message);
    }
    poll(nullptr, 0, kRetryMs);
  }
}

// Returns the address on which a rank listens for ranks with higher numbers: only on this host if rank 0 is
// reached through the loopback interface.
TcpAddress own_address(const TcpAddress& host) {
  TcpAddress loopback{.storage = {}, .length = host.length};
  loopback.storage.ss_family = host.storage.ss_family;
  if (host.storage.ss_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(&host.storage);
    if (ntohl(address->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET)
      reinterpret_cast<sockaddr_in*>(&loopback.storage)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else if (host.storage.ss_family == AF_INET6) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(&host.storage);
    if (IN6_IS_ADDR_LOOPBACK(&address->sin6_addr))
      reinterpret_cast<sockaddr_in6*>(&loopback.storage)->sin6_addr = in6addr_loopback;
  }
  return loopback;
}

Result<std::vector<Socket>> join(const TcpRanks& ranks) {
  TRY(const TcpAddress host, resolve(ranks.address_flag, ranks.address, ranks.port));
  TRY(const Socket listener, listen_at(own_address(host)));
  TcpAddress own{.storage = {}, .length = sizeof own.storage};
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&own.storage), &own.length);
  const Hello hello{
      .identity = identity_of(ranks), .rank = ranks.rank, .size = ranks.size, .port = own.port()};

  std::vector<Socket> sockets(static_cast<std::size_t>(ranks.size));
  std::vector<TcpAddress> addresses(sockets.size());
  const Patience patience(ranks);
  for (bool welcome = false; !welcome;) {
    TRY(sockets[0], reach_rank_0(ranks, hello, patience));
    Welcome answer;
    // Rank 0 responds only when all ranks are connected.
    pollfd readable{sockets[0].fd(), POLLIN, 0};
    while (poll(&readable, 1, kRetryMs) == 0) TRY_VOID(patience.check());
    if (!read_value(sockets[0], answer)) {
      poll(nullptr, 0, kRetryMs);
      continue;  // rank 0 has disconnected, but may return
    }
    if (!answer.accepted) return invalid(ranks.address_flag, "{}", answer.why.data());
    welcome = read_all(sockets[0], std::as_writable_bytes(std::span(addresses)), kReadMs);
  }
  for (int rank = 1; rank < ranks.rank; ++rank) {
    auto socket = connect_to(addresses[static_cast<std::size_t>(rank)]);
    if (!socket || !write_value(*socket, hello))
      return failure(ErrorCode::unavailable, "rank {} cannot reach rank {}: {}", ranks.rank, rank,
                     socket ? "it does not answer" : socket.error().message);
    sockets[static_cast<std::size_t>(rank)] = *std::move(socket);
  }
  for (int left = ranks.size - 1 - ranks.rank; left > 0;) {
    auto accepted = accept_from(listener, kDeadLinkMs);
    if (!accepted)
      return failure(ErrorCode::unavailable, "rank {} waits for other ranks: {}", ranks.rank,
                     accepted.error().message);
    Hello other;
    if (!read_value(accepted->first, other) || other.magic != kMagic || other.identity != hello.identity ||
        other.rank <= ranks.rank || other.rank >= ranks.size)
      continue;
    sockets[static_cast<std::size_t>(other.rank)] = std::move(accepted->first);
    --left;
  }
  return sockets;
}

}  // namespace

Result<std::vector<Socket>> meet_ranks(const TcpRanks& ranks) {
  return ranks.rank == 0 ? Host(ranks).wait_for_all() : join(ranks);
}

}  // namespace octavo
