#include "transfer/peers/block_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "transfer/kv_pieces.h"
#include "transfer/peers/regroup_blocks.h"

namespace octavo {
namespace {

constexpr std::size_t kConnectionsMax = 64;

// Returns null if UCX is not available; the caller then uses another transport.
std::unique_ptr<UcxChannel> ucx_to(const std::string& address) {
  if (address.empty()) return nullptr;
  auto channel = open_ucx_channel();
  const Result<> connected = channel ? (*channel)->connect(address) : std::unexpected(channel.error());
  if (connected) return *std::move(channel);
  log_warning("KV transfer: the consumer requested UCX, but the blocks are sent over TCP: {}",
              connected.error().message);
  return nullptr;
}

// Returns the keys of the requested pieces for the consumer's block size, including pieces that this engine
// does not have.
std::vector<Hash128> keys_of(const Lease& lease, const BlockFormat& own, const Pull& pull) {
  const bool held = pull.format.block_size == own.block_size && pull.blocks <= std::ssize(lease.keys);
  if (held || own.planes.empty()) return lease.keys;
  return transfer_keys(lease.text, lease.identity, pull.format.block_size);
}

}  // namespace

Result<std::unique_ptr<BlockServer>> BlockServer::start(BlockServerOptions options, LeaseTable& leases,
                                                        ReadBlock read, NativeBlocks native,
                                                        std::function<void()> on_finished) {
  std::unique_ptr<BlockServer> server(new BlockServer(std::move(options), leases, std::move(read),
                                                      std::move(native), std::move(on_finished)));
  TRY(server->listening_, listen_at(server->options_.host, server->options_.port));
  server->accepting_ = std::thread([s = server.get()] { s->accept_all(); });
  return server;
}

BlockServer::BlockServer(BlockServerOptions options, LeaseTable& leases, ReadBlock read, NativeBlocks native,
                         std::function<void()> on_finished)
    : options_(std::move(options)),
      leases_(leases),
      read_(std::move(read)),
      native_(std::move(native)),
      digest_(options_.format.digest()),
      on_finished_(std::move(on_finished)) {}

BlockServer::~BlockServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const Connection& connection : connections_) connection.socket.interrupt();
  }
  if (listening_ >= 0) shutdown(listening_, SHUT_RDWR);  // wakes up accept()
  if (accepting_.joinable()) accepting_.join();
  for (Connection& connection : connections_) connection.thread.join();
  if (listening_ >= 0) close(listening_);
}

void BlockServer::accept_all() {
  for (;;) {
    const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    drop_ended();
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      if (fd >= 0) close(fd);
      return;
    }
    if (fd < 0) {
      // The process has no free descriptors or memory: tries again later.
      if (errno != ECONNABORTED && errno != EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (connections_.size() >= kConnectionsMax) {
      // too many connections; the consumer then computes the prompt itself
      close(fd);
      continue;
    }
    Connection& connection = connections_.emplace_back(fd);
    connection.thread = std::thread([this, &connection] {
      serve(connection.socket);
      const std::lock_guard over(mutex_);
      connection.over = true;
    });
  }
}

void BlockServer::drop_ended() {
  std::list<Connection> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto c = connections_.begin(); c != connections_.end();) {
      const auto next = std::next(c);
      if (c->over) ended.splice(ended.end(), connections_, c);
      c = next;
    }
  }
  for (Connection& connection : ended) connection.thread.join();
}

void BlockServer::serve(PeerSocket& socket) {
  const Result<> served = answer(socket);
  // Only shuts the connection down. accept_all() destroys the Connection later.
  socket.interrupt();
  if (!served && served.error().code != ErrorCode::io) log_warning("KV transfer: {}", served.error().message);
}

Result<> BlockServer::answer(PeerSocket& socket) {
  TRY(const TransferMessage message, receive_message(socket));
  if (const auto* done = std::get_if<Done>(&message)) {
    finish(done->request_id);
    return {};
  }
  if (const auto* keep = std::get_if<Keep>(&message)) return keep_leases(socket, *keep);
  const auto* pull = std::get_if<Pull>(&message);
  if (pull == nullptr) return failure(ErrorCode::corrupt, "another engine sent an invalid first message");
  Refused refused;
  refused.message = refusal(*pull, refused.reason);
  if (!refused.message.empty()) return send_message(socket, refused);
  return give_blocks(socket, *pull);
}

// Renews one lease for each Keep message until the consumer closes the connection.
Result<> BlockServer::keep_leases(PeerSocket& socket, Keep next) {
  for (;;) {
    leases_.use(next.request_id, now_us(), [](const Lease&) {});
    TRY(TransferMessage message, receive_message(socket));
    if (!std::holds_alternative<Keep>(message))
      return failure(ErrorCode::corrupt, "the other engine sent an invalid message");
    next = std::get<Keep>(std::move(message));
  }
}

// Returns the reason to refuse the request, or "" to accept it.
std::string BlockServer::refusal(const Pull& pull, KvTransferFailure& reason) {
  reason = KvTransferFailure::mismatch;
  if (std::string what = difference(options_.format, pull.format);
      !what.empty() && !can_regroup(options_.format, pull.format))
    return what;
  bool same_tokens = false;
  const bool leased =
      pull.engine_id == options_.engine_id && leases_.use(pull.request_id, now_us(), [&](const Lease& lease) {
        const auto blocks = static_cast<std::size_t>(pull.blocks);
        const std::vector<Hash128> keys = keys_of(lease, options_.format, pull);
        same_tokens = blocks > 0 && blocks <= keys.size() && keys[blocks - 1] == pull.key;
      });
  if (leased) return same_tokens ? "" : "the blocks have different tokens";
  reason = KvTransferFailure::expired;
  return "the blocks of this request do not exist or have expired";
}

Result<> BlockServer::give_blocks(PeerSocket& socket, const Pull& pull) {
  Result<> given;
  // The lease does not expire during use(), so the blocks stay valid.
  const bool leased = leases_.use(pull.request_id, now_us(),
                                  [&](const Lease& lease) { given = give_pieces(socket, pull, lease); });
  if (!leased) return send_message(socket, Refused{KvTransferFailure::expired, "the blocks were freed"});
  if (given) finish(pull.request_id);
  return given;
}

// Sends the pieces that the consumer requests, until Done. If the block sizes differ, it regroups the
// blocks.
Result<> BlockServer::give_pieces(PeerSocket& socket, const Pull& pull, const Lease& lease) {
  const BlockFormat& own = options_.format;
  const bool regroups = pull.format.block_size != own.block_size;
  const std::int64_t held = std::ssize(lease.blocks) * own.block_size / pull.format.block_size;
  const int blocks = static_cast<int>(std::min<std::int64_t>(pull.blocks, held));
  ReadNumber read = [&](std::size_t number, std::span<std::byte> out) { read_(lease.blocks[number], out); };
  std::optional<BlockRegrouper> regrouper;
  if (regroups) {
    regrouper.emplace(own, pull.format, std::move(read));
    read = [&](std::size_t number, std::span<std::byte> out) { regrouper->make(number, out); };
  }
  const std::vector<Hash128> keys = keys_of(lease, own, pull);
  const std::string layout = regroups ? "" : native_.layout;
  std::unique_ptr<BlockSender> sender;
  if (pull.segment.slot_bytes == static_cast<std::int64_t>(slot_bytes(pull.format)))
    sender = shared_memory_sender(pull.segment);
  const bool shared = sender != nullptr;
  if (!shared) sender = tcp_sender(socket);
  const std::unique_ptr<UcxChannel> ucx = ucx_to(regroups ? "" : pull.ucx);
  TRY_VOID(send_message(
      socket, Ready{.blocks = blocks, .shared_memory = shared, .layout = layout, .ucx = ucx != nullptr}));
  for (;;) {
    TRY(const TransferMessage message, receive_message(socket));
    if (std::holds_alternative<Done>(message)) return {};
    const auto* get = std::get_if<Get>(&message);
    if (get == nullptr) return failure(ErrorCode::corrupt, "the other engine sent an invalid message");
    const bool packed = get->way == BlockWay::packed;
    if (get->slot >= kTransferSlots || get->count < 1 || get->count > piece_blocks(pull.format) ||
        get->first > blocks - get->count || (!packed && layout.empty()))
      return failure(ErrorCode::corrupt, "another engine requested {} blocks from {} on, {}", get->count,
                     get->first, kBlockWayNames[static_cast<std::size_t>(get->way)]);
    TRY_VOID(packed ? give_packed(socket, pull.format, keys, read, *get, *sender)
                    : give_native(socket, lease, *get, ucx.get()));
  }
}

Result<> BlockServer::give_packed(PeerSocket& socket, const BlockFormat& format,
                                  std::span<const Hash128> keys, const ReadNumber& read, const Get& get,
                                  BlockSender& sender) {
  const std::size_t stride = format.stride();
  const std::span<std::byte> slot = sender.slot(get.slot, static_cast<std::size_t>(get.count) * stride);
  for (std::size_t i = 0; i < static_cast<std::size_t>(get.count); ++i) {
    const std::size_t block = static_cast<std::size_t>(get.first) + i;
    const std::span<std::byte> packed = slot.subspan(i * stride, stride);
    read(block, contents(format, packed));
    seal(format, keys[block], packed);
  }
  TRY_VOID(send_message(socket, Piece{get.first, get.count}));
  return sender.send(slot);
}

Result<> BlockServer::give_native(PeerSocket& socket, const Lease& lease, const Get& get, UcxChannel* ucx) {
  std::vector<BlockHeader> headers;
  std::vector<std::span<const std::byte>> blocks;
  for (int i = get.first; i < get.first + get.count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    blocks.push_back(native_.memory(lease.blocks[index]));
    headers.push_back(header_of(digest_, lease.keys[index], blocks.back()));
  }
  TRY_VOID(send_message(socket, Piece{get.first, get.count}));
  TRY_VOID(socket.send(std::as_bytes(std::span(headers))));
  if (ucx != nullptr) return ucx->send(blocks, socket.fd());
  for (const std::span<const std::byte> block : blocks) TRY_VOID(socket.send(block));
  return {};
}

void BlockServer::finish(const std::string& id) {
  leases_.finish(id);
  on_finished_();
}

}  // namespace octavo
