#include "transfer/peers/nixl/vllm_fetcher.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/quoted_text.h"

namespace octavo {
namespace {

constexpr std::size_t kPeersMax = 256;
// One read has the number of blocks that fit into kReadBytes, but at least one block.
constexpr std::size_t kReadBytes = std::size_t{16} << 20;
constexpr std::size_t kBlockBytesMax = std::size_t{1} << 30;

// Returns the index in memory of block `number` of the request.
Result<std::uint64_t> block_in_memory(const std::vector<std::int64_t>& ids, std::int64_t blocks_of_an_id,
                                      std::size_t number, const VllmRegion& region) {
  const auto each = static_cast<std::size_t>(blocks_of_an_id);
  const std::int64_t id = ids[number / each];
  const std::int64_t most = region.blocks / blocks_of_an_id;
  if (id < 0 || id >= most)
    return invalid("", "remote_block_ids has {}, and the other engine has {} blocks", id, most);
  return static_cast<std::uint64_t>(id) * each + number % each;
}

}  // namespace

VllmFetcher::VllmFetcher(BlockFormat format, std::unique_ptr<NixlAgent> agent,
                         std::function<Result<Buffer>(std::size_t)> allocate, WriteBlock write, OnResult done,
                         const PeerTimes& times)
    : format_(std::move(format)),
      times_(times),
      agent_(std::move(agent)),
      allocate_(std::move(allocate)),
      write_(std::move(write)),
      queue_([this](std::size_t worker, const LoadTask& task,
                    LoadResult& result) { return fetch(worker, task, result); },
             std::move(done)) {}

VllmFetcher::~VllmFetcher() { queue_.stop(); }

// Does the handshake, unless it is done. engine_id: the engine that must be at this address; "": any engine.
Result<std::shared_ptr<const VllmFetcher::Peer>> VllmFetcher::connect(const Address& address,
                                                                      const std::string& engine_id) {
  const auto is_wanted = [&](const std::string& id) { return engine_id.empty() || id == engine_id; };
  {
    const std::lock_guard lock(mutex_);
    const auto found = peers_.find(address);
    if (found != peers_.end() && is_wanted(found->second->engine_id)) return found->second;
  }
  // ZeroMQ does not report that nobody listens, so a connection is tried first.
  TRY_VOID(PeerSocket::connect(address.first, address.second, times_));
  TRY(VllmAgent agent, ask_vllm(address.first, address.second, times_, queue_.stopping()));
  if (!is_wanted(agent.engine_id))
    return invalid("", "engine_id is {} at the other engine, and remote_engine_id is {}",
                   quoted_text(agent.engine_id), quoted_text(engine_id));
  TRY(const VllmBlocks blocks, VllmBlocks::of(format_, agent));
  if (blocks.bytes() > kBlockBytesMax)
    return invalid("", "a block of the other engine has {} bytes, at most {} are supported", blocks.bytes(),
                   kBlockBytesMax);
  const std::lock_guard lock(mutex_);
  if (const auto found = peers_.find(address); found != peers_.end()) {
    if (found->second->engine_id == agent.engine_id) return found->second;  // another thread was faster
    agent_->remove(found->second->source.agent);
    peers_.erase(found);
  }
  if (peers_.size() >= kPeersMax) {
    agent_->remove(peers_.begin()->second->source.agent);
    peers_.erase(peers_.begin());
  }
  TRY(std::string name, agent_->add(agent.metadata));
  log_info("NIXL: engine {} at {}:{}, {} {}, blocks of {} tokens", agent.engine_id, address.first,
           address.second, agent.backend, agent.layout, agent.block_size);
  auto peer =
      std::make_shared<const Peer>(Peer{.engine_id = std::move(agent.engine_id),
                                        .source = {.agent = std::move(name),
                                                   .memory = agent.memory == "VRAM" ? kNixlVram : kNixlDram,
                                                   .device = static_cast<std::uint64_t>(agent.device)},
                                        .blocks_of_an_id = agent.blocks_of_an_id,
                                        .regions = std::move(agent.regions),
                                        .blocks = blocks});
  return peers_[address] = std::move(peer);
}

// Closes the connections after an error. The next load does the handshake again.
void VllmFetcher::forget(const Address& address, const std::shared_ptr<const Peer>& peer) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(address);
  if (found == peers_.end() || found->second != peer) return;
  agent_->remove(peer->source.agent);
  peers_.erase(found);
}

Result<> VllmFetcher::renew(const std::string& host, int port, const std::vector<std::string>& leases) {
  TRY(const auto peer, connect({host, port}, ""));
  return agent_->notify(peer->source.agent, fmt::format("HB:{}", fmt::join(leases, ",")));
}

Result<> VllmFetcher::fetch(std::size_t worker, const LoadTask& task, LoadResult& result) {
  const Address address{task.from.remote_host, task.from.remote_port};
  TRY(const auto peer, connect(address, task.from.remote_engine_id));
  std::unique_ptr<NixlBuffer>& buffer = buffers_[worker];
  Result<> fetched = fetch_from(*peer, buffer, task, result);
  if (!fetched && fetched.error().code == ErrorCode::io) {
    forget(address, peer);
    if (buffer != nullptr) agent_->keep(std::move(buffer));
  }
  if (!fetched) return fetched;
  // If the notification fails, the lease expires later.
  (void)agent_->notify(peer->source.agent, fmt::format("{}:1", task.from.remote_request_id));
  return {};
}

Result<> VllmFetcher::fetch_from(const Peer& peer, std::unique_ptr<NixlBuffer>& buffer, const LoadTask& task,
                                 LoadResult& result) {
  if (task.blocks.empty()) return {};
  if (task.from.remote_block_ids.size() != 1)
    return invalid("", "remote_block_ids has {} cache groups, must have 1",
                   task.from.remote_block_ids.size());
  const std::vector<std::int64_t>& ids = task.from.remote_block_ids[0];
  const std::size_t tokens = peer.blocks.tokens(), size = static_cast<std::size_t>(format_.block_size);
  const std::size_t computed =
      std::min(ids.size() * static_cast<std::size_t>(peer.blocks_of_an_id) * tokens,
               static_cast<std::size_t>(std::max<std::int64_t>(task.from.remote_num_tokens, 0)));
  const std::size_t end = std::min(task.keys.size(), computed / size) * size;
  const std::size_t at_once = std::max<std::size_t>(1, kReadBytes / peer.blocks.bytes());
  TRY_VOID(prepare(buffer, at_once * peer.blocks.bytes()));
  std::vector<std::byte> piece(static_cast<std::size_t>(format_.bytes));
  std::size_t at = static_cast<std::size_t>(task.first) * size;
  while (at < end && !*task.cancelled) {
    const std::size_t first = at / tokens;
    const std::size_t count = std::min(at_once, (end + tokens - 1) / tokens - first);
    TRY_VOID(read_blocks(peer, *buffer, task, first, count));
    for (const std::size_t read = std::min(end, (first + count) * tokens); at < read;) {
      const std::size_t run = std::min({tokens - at % tokens, size - at % size, read - at});
      const auto block = buffer->memory().subspan((at / tokens - first) * peer.blocks.bytes());
      peer.blocks.copy(block.first(peer.blocks.bytes()), at % tokens, run, piece, at % size);
      at += run;
      if (at % size != 0) continue;
      write_(task.blocks[static_cast<std::size_t>(result.loaded)], piece);
      ++result.loaded;
      result.bytes += format_.bytes;
    }
  }
  return {};
}

Result<> VllmFetcher::prepare(std::unique_ptr<NixlBuffer>& buffer, std::size_t bytes) {
  if (buffer != nullptr && buffer->memory().size() >= bytes) return {};
  buffer.reset();
  TRY(Buffer memory, allocate_(bytes));
  TRY(buffer, agent_->register_memory(std::move(memory)));
  return {};
}

// Reads blocks [first, first + count) of the request, each with all its layers.
Result<> VllmFetcher::read_blocks(const Peer& peer, const NixlBuffer& buffer, const LoadTask& task,
                                  std::size_t first, std::size_t count) {
  std::vector<NixlRange> ranges;
  ranges.reserve(count * peer.regions.size());
  for (std::size_t number = first; number < first + count; ++number) {
    for (const VllmRegion& region : peer.regions) {
      TRY(const std::uint64_t block,
          block_in_memory(task.from.remote_block_ids[0], peer.blocks_of_an_id, number, region));
      ranges.push_back({region.address + block * static_cast<std::uint64_t>(region.stride),
                        static_cast<std::size_t>(region.block_bytes)});
    }
  }
  return agent_->read(peer.source, ranges, buffer, times_.answer, queue_.stopping());
}

}  // namespace octavo
