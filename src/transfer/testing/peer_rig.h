// For tests: a producer that offers blocks over the network, and a consumer that fetches them.
#pragma once

#include <array>
#include <cstring>
#include <future>
#include <mutex>
#include <numeric>

#include "base/clock.h"
#include "transfer/peers/block_fetcher.h"
#include "transfer/peers/block_server.h"
#include "transfer/peers/lease_keeper.h"

namespace octavo::peer_rig {

// The blocks are large, so a prompt needs several transfers.
inline const BlockFormat kFormat{.fingerprint = "m", .dtype = "bf16", .block_size = 16, .bytes = 64 << 10};
constexpr int kBlocks = 40;

inline std::byte content(std::int32_t block) { return static_cast<std::byte>(block * 7 + 1); }

inline std::vector<Hash128> some_keys(int count = kBlocks) {
  std::vector<Hash128> keys;
  for (int i = 0; i < count; ++i) keys.push_back({static_cast<std::uint64_t>(i), 5});
  return keys;
}

// Transport to test.
struct Way {
  const char* name;
  bool one_host = true;
  bool native = false;  // both engines have the same layout, so blocks are transferred unpacked
  bool ucx = false;
};
// Size of a native block in bytes: the contents and 64 bytes of padding, because a real layout may also pad
// its blocks.
constexpr std::size_t kNativeBytes = (64 << 10) + 64;

struct Producer {
  std::vector<std::byte> memory;
  LeaseTable leases{30};
  std::atomic<int> finished = 0;
  std::unique_ptr<BlockServer> server;

  explicit Producer(const Way& way = {}) : memory(way.native ? kBlocks * kNativeBytes : 0) {
    NativeBlocks native;
    if (way.native)
      native = {.layout = "alike", .memory = [this](KvLocation from) {
                  const auto index = static_cast<std::size_t>(from.number - 100);
                  const auto bytes = std::span(memory).subspan(index * kNativeBytes, kNativeBytes);
                  std::ranges::fill(bytes, content(from.number));
                  return bytes;
                }};
    server = BlockServer::start(
                 {.host = "127.0.0.1", .port = 0, .engine_id = "e", .format = kFormat}, leases,
                 [](KvLocation from, std::span<std::byte> out) {
                   std::memset(out.data(), static_cast<int>(content(from.number)), out.size());
                 },
                 native, [this] { ++finished; })
                 .value();
    Lease lease{.keys = some_keys(), .owner = 9};
    for (int b = 0; b < kBlocks; ++b) lease.blocks.push_back({.number = 100 + b});
    leases.add("r", std::move(lease), now_us());
  }
};

inline LoadTask task_for(int port, int first = 0) {
  LoadTask task{.id = 3,
                .from = {.remote_engine_id = "e",
                         .remote_request_id = "r",
                         .remote_host = "127.0.0.1",
                         .remote_port = port},
                .first = first,
                .keys = some_keys(),
                .cancelled = std::make_shared<std::atomic<bool>>(false)};
  for (int b = first; b < kBlocks; ++b) task.blocks.push_back({.number = b});
  return task;
}

struct Consumer {
  PeerTimes times{};
  std::mutex mutex;
  std::vector<std::int32_t> written;
  std::vector<std::byte> memory;
  bool right = true;

  std::span<std::byte> block_memory(std::int32_t block) {
    return std::span(memory).subspan(static_cast<std::size_t>(block) * kNativeBytes, kNativeBytes);
  }
  LoadResult fetch(LoadTask task, const Way& way = {}, const BlockFormat& format = kFormat) {
    std::promise<LoadResult> result;
    NativeBlocks native;
    if (way.native) {
      memory.resize(kBlocks * kNativeBytes);
      native = {.layout = "alike", .memory = [this](KvLocation to) {
                  written.push_back(to.number);
                  return block_memory(to.number);
                }};
    }
    BlockFetcher fetcher(
        format, way.one_host, way.ucx,
        [&](KvLocation to, std::span<const std::byte> bytes) {
          const std::lock_guard lock(mutex);
          written.push_back(to.number);
          right =
              right && std::ranges::all_of(bytes, [&](std::byte b) { return b == content(100 + to.number); });
        },
        native, [&](LoadResult got) { result.set_value(std::move(got)); }, times);
    fetcher.post(std::move(task));
    LoadResult got = result.get_future().get();
    if (way.native)
      for (const std::int32_t block : std::span(written).first(static_cast<std::size_t>(got.loaded)))
        right = right && std::ranges::all_of(block_memory(block),
                                             [&](std::byte b) { return b == content(100 + block); });
    return got;
  }
};

}  // namespace octavo::peer_rig
