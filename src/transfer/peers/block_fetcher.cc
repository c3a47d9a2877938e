#include "transfer/peers/block_fetcher.h"

#include <algorithm>
#include <utility>

namespace octavo {

BlockFetcher::BlockFetcher(BlockFormat format, bool one_host, bool ucx, WriteBlock write, NativeBlocks native,
                           OnResult done, const PeerTimes& times)
    : format_(std::move(format)),
      digest_(format_.digest()),
      one_host_(one_host),
      ucx_(ucx),
      times_(times),
      write_(std::move(write)),
      native_(std::move(native)),
      queue_([this](std::size_t worker, const LoadTask& task,
                    LoadResult& result) { return fetch(workers_[worker], task, result); },
             std::move(done)) {}

BlockFetcher::~BlockFetcher() {
  queue_.stop();
  const std::lock_guard lock(mutex_);
  for (const Worker& worker : workers_)
    if (worker.socket != nullptr) worker.socket->interrupt();
}

Result<> BlockFetcher::renew(const std::string& host, int port, const std::vector<std::string>& leases) {
  TRY(PeerSocket socket, PeerSocket::connect(host, port, times_));
  for (const std::string& lease : leases) TRY_VOID(send_message(socket, Keep{lease}));
  return {};
}

// socket: the worker's new connection, or null. Returns false if the fetcher is stopping.
bool BlockFetcher::set_socket(Worker& worker, const PeerSocket* socket) {
  const std::lock_guard lock(mutex_);
  worker.socket = socket;
  return !queue_.stopping();
}

Result<> BlockFetcher::fetch(Worker& worker, const LoadTask& task, LoadResult& result) {
  TRY(PeerSocket socket, PeerSocket::connect(task.from.remote_host, task.from.remote_port, times_));
  if (!set_socket(worker, &socket)) socket.interrupt();
  Result<> fetched = task.blocks.empty() ? send_message(socket, Done{task.from.remote_request_id})
                                         : fetch_over(worker, socket, task, result);
  set_socket(worker, nullptr);
  // After a failure, the producer may still write to the shared memory, so later tasks get new memory.
  if (!task.blocks.empty() && (!fetched || *task.cancelled)) {
    worker.slots.reset();
    worker.ucx.reset();
  }
  return fetched;
}

Result<> BlockFetcher::fetch_over(Worker& worker, PeerSocket& socket, const LoadTask& task,
                                  LoadResult& result) {
  if (!worker.slots) {
    TRY(worker.slots, TransferSlots::create(slot_bytes(format_)));
  }
  if (ucx_ && !worker.ucx) {
    TRY(worker.ucx, open_ucx_channel());
  }
  int end = static_cast<int>(task.keys.size());
  TRY_VOID(send_message(socket, Pull{.format = format_,
                                     .engine_id = task.from.remote_engine_id,
                                     .request_id = task.from.remote_request_id,
                                     .blocks = end,
                                     .key = task.keys.back(),
                                     .segment = one_host_ ? worker.slots->offer() : SegmentOffer{},
                                     .ucx = ucx_ ? worker.ucx->address() : ""}));
  // Receives the next message. Returns an error if it is not a Message.
  const auto expect = [&]<class Message>(Message& out) -> Result<> {
    TRY(TransferMessage message, receive_message(socket));
    if (const auto* refused = std::get_if<Refused>(&message)) {
      result.failure = refused->reason;
      return failure(ErrorCode::unavailable, "the other engine refused the transfer: {}", refused->message);
    }
    if (!std::holds_alternative<Message>(message))
      return failure(ErrorCode::corrupt, "the other engine sent an unexpected message");
    out = std::get<Message>(std::move(message));
    return {};
  };
  Ready ready;
  TRY_VOID(expect(ready));
  end = std::min(end, ready.blocks);
  const BlockWay way = way_of(ready);
  const auto receiver =
      ready.shared_memory ? shared_memory_receiver(*worker.slots) : tcp_receiver(*worker.slots, socket);

  const std::size_t stride = format_.stride();
  const int most = piece_blocks(format_);
  int requested = task.first;
  const auto request = [&](int slot) -> Result<> {
    const int count = std::min(most, end - requested);
    if (count <= 0) return {};
    TRY_VOID(send_message(socket, Get{requested, count, slot, way}));
    requested += count;
    return {};
  };
  for (int slot = 0; slot < kTransferSlots; ++slot) TRY_VOID(request(slot));
  for (int at = task.first, slot = 0; at < end && !*task.cancelled; slot = (slot + 1) % kTransferSlots) {
    Piece piece;
    TRY_VOID(expect(piece));
    const int count = std::min(most, end - at);
    if (piece.first != at || piece.count != count)
      return failure(ErrorCode::corrupt, "the other engine sent an unexpected piece");
    if (way == BlockWay::packed) {
      TRY(const auto packed, receiver->receive(slot, static_cast<std::size_t>(count) * stride));
      TRY_VOID(take_packed(task, packed, result));
    } else {
      TRY_VOID(take_native(socket, ready.ucx ? worker.ucx.get() : nullptr, count, task, result));
    }
    at += count;
    TRY_VOID(request(slot));
  }
  // If sending fails, the lease expires later.
  (void)send_message(socket, Done{task.from.remote_request_id});
  return {};
}

// Chooses native or packed blocks. Over a socket, native blocks save one copy. Over shared memory they save
// nothing, because the producer must copy the block into the shared memory anyway, and packs it in the same
// copy.
BlockWay BlockFetcher::way_of(const Ready& ready) const {
  const bool alike = !native_.layout.empty() && native_.layout == ready.layout;
  return alike && !ready.shared_memory ? BlockWay::native : BlockWay::packed;
}

Result<> BlockFetcher::take_packed(const LoadTask& task, std::span<const std::byte> packed,
                                   LoadResult& result) {
  for (; !packed.empty(); packed = packed.subspan(format_.stride())) {
    const auto index = static_cast<std::size_t>(result.loaded);
    const std::span<const std::byte> block = packed.first(format_.stride());
    TRY_VOID(verify(format_, task.keys[static_cast<std::size_t>(task.first) + index], block));
    write_(task.blocks[index], contents(format_, block));
    ++result.loaded;
    result.bytes += format_.bytes;
  }
  return {};
}

// Receives directly into the cache blocks, before their checksums are verified. Invalid contents do no harm,
// because no request uses these blocks yet.
Result<> BlockFetcher::take_native(PeerSocket& socket, UcxChannel* ucx, int count, const LoadTask& task,
                                   LoadResult& result) {
  std::vector<BlockHeader> headers(static_cast<std::size_t>(count));
  TRY_VOID(socket.receive(std::as_writable_bytes(std::span(headers))));
  std::vector<std::span<std::byte>> blocks;
  for (int i = 0; i < count; ++i)
    blocks.push_back(native_.memory(task.blocks[static_cast<std::size_t>(result.loaded + i)]));
  if (ucx != nullptr) TRY_VOID(ucx->receive(blocks, socket.fd()));
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (ucx == nullptr) TRY_VOID(socket.receive(blocks[i]));
    const auto index = static_cast<std::size_t>(task.first + result.loaded);
    TRY_VOID(verify(headers[i], digest_, task.keys[index], blocks[i]));
    ++result.loaded;
    result.bytes += format_.bytes;
  }
  return {};
}

}  // namespace octavo
