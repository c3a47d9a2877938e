#include "dist/tcp_transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dist/tcp_meeting.h"

namespace octavo {
namespace {

constexpr int kPollMs = 50;
constexpr std::size_t kKeptAtOnce = 256 << 10;

Result<> lost_rank(int rank, int error) {
  return failure(ErrorCode::unavailable, "rank {} has stopped: {}", rank,
                 error == 0 ? "the connection was closed" : std::strerror(error));
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::meet(const TcpRanks& ranks) {
  TRY(std::vector<Socket> sockets, meet_ranks(ranks));
  return std::unique_ptr<TcpTransport>(new TcpTransport(ranks.rank, std::move(sockets)));
}

TcpTransport::TcpTransport(int rank, std::vector<Socket> sockets) : rank_(rank) {
  for (Socket& socket : sockets) peers_.push_back({.socket = std::move(socket)});
}

Result<> TcpTransport::exchange(std::span<const Send> sends, std::span<const Receive> receives,
                                int timeout_ms) {
  for (const Send& send : sends) peers_[static_cast<std::size_t>(send.to)].out = send.bytes;
  for (const Receive& receive : receives) peers_[static_cast<std::size_t>(receive.from)].in = receive.bytes;
  std::vector<pollfd> polled(peers_.size());
  for (int waited_ms = 0;;) {
    int waits_for = -1;
    for (int r = 0; r < size(); ++r) {
      Peer& peer = peers_[static_cast<std::size_t>(r)];
      if (!peer.out.empty()) TRY_VOID(send_some(peer, r));
      if (!peer.in.empty()) TRY_VOID(receive_some(peer, r));
      if (!peer.out.empty() || !peer.in.empty()) waits_for = r;
      const bool sends_more = !peer.out.empty();
      // A peer that has closed normally has sent all its data, so its end is not an error here.
      polled[static_cast<std::size_t>(r)] = {peer.ended ? -1 : peer.socket.fd(),
                                             static_cast<short>(POLLIN | (sends_more ? POLLOUT : 0)), 0};
    }
    if (waits_for < 0) return {};
    const int ready = poll(polled.data(), polled.size(), kPollMs);
    waited_ms = ready == 0 ? waited_ms + kPollMs : 0;
    // Any disconnected rank ends the wait: the rank that this one waits for may have detected the
    // disconnection and given up.
    for (int r = 0; ready == 0 && r < size(); ++r)
      if (peers_[static_cast<std::size_t>(r)].ended) return lost_rank(r, 0);
    if (timeout_ms > 0 && waited_ms >= timeout_ms)
      return failure(ErrorCode::unavailable, "rank {} has not answered for {} ms", waits_for, timeout_ms);
    for (int r = 0; ready > 0 && r < size(); ++r) {
      Peer& peer = peers_[static_cast<std::size_t>(r)];
      const bool has_data = (polled[static_cast<std::size_t>(r)].revents & ~POLLOUT) != 0;
      if (has_data && peer.in.empty()) TRY_VOID(receive_some(peer, r));
    }
  }
}

// The keep-alive of the operating system detects a link that was cut (tcp_socket.cc).
Result<> TcpTransport::check() const {
  for (int rank = 0; rank < size(); ++rank) {
    pollfd ended{peers_[static_cast<std::size_t>(rank)].socket.fd(), POLLRDHUP, 0};
    if (poll(&ended, 1, 0) > 0) return lost_rank(rank, 0);
  }
  return {};
}

bool TcpTransport::has_arrivals() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) {
    pollfd readable{peer.socket.fd(), POLLIN, 0};
    return peer.taken < peer.kept.size() || peer.ended || poll(&readable, 1, 0) > 0;
  });
}

std::vector<int> TcpTransport::sockets() const {
  std::vector<int> sockets;
  for (const Peer& peer : peers_)
    if (peer.socket.fd() >= 0) sockets.push_back(peer.socket.fd());
  return sockets;
}

Result<> TcpTransport::send_some(Peer& peer, int rank) {
  while (!peer.out.empty()) {
    const ssize_t sent =
        send(peer.socket.fd(), peer.out.data(), peer.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) return would_wait() ? Result<>() : lost_rank(rank, errno);
    peer.out = peer.out.subspan(static_cast<std::size_t>(sent));
  }
  return {};
}

// Copies received bytes to the buffer that the current exchange has for them. Bytes without a buffer are
// stored.
Result<> TcpTransport::receive_some(Peer& peer, int rank) {
  if (!peer.in.empty() && peer.taken < peer.kept.size()) {
    const std::size_t bytes = std::min(peer.in.size(), peer.kept.size() - peer.taken);
    std::memcpy(peer.in.data(), peer.kept.data() + peer.taken, bytes);
    peer.in = peer.in.subspan(bytes);
    peer.taken += bytes;
    if (peer.taken < peer.kept.size()) return {};
    peer.kept.clear();
    peer.taken = 0;
    if (peer.in.empty()) return {};
  }
  const bool keeps = peer.in.empty();
  const std::size_t before = peer.kept.size();
  if (keeps) peer.kept.resize(before + kKeptAtOnce);
  const std::span<std::byte> buffer = keeps ? std::span(peer.kept).subspan(before) : peer.in;
  const ssize_t received = recv(peer.socket.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  const int error = errno;
  if (keeps) peer.kept.resize(before + static_cast<std::size_t>(std::max<ssize_t>(received, 0)));
  if (received == 0) {
    peer.ended = true;
    return keeps ? Result<>() : lost_rank(rank, 0);
  }
  if (received < 0) return error == EAGAIN || error == EINTR ? Result<>() : lost_rank(rank, error);
  if (!keeps) peer.in = peer.in.subspan(static_cast<std::size_t>(received));
  return {};
}

}  // namespace octavo
