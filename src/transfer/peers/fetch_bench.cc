// Measures the transfer of KV blocks between two engines: each step, and the total. For comparison it
// measures a plain copy and a plain socket. Sizes: a prompt of 4,096 tokens of the demo model (12 MB) and
// of a 1B model (134 MB).
#include <benchmark/benchmark.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>

#include "base/clock.h"
#include "kernels/backends.h"
#include "kernels/kv_exchange.h"
#include "transfer/peers/block_fetcher.h"
#include "transfer/peers/block_server.h"

namespace octavo {
namespace {

constexpr int kTokens = 4096, kBlockSize = 16, kBlocks = kTokens / kBlockSize;

struct Shape {
  int layers, kv_heads, head_dim;
};
constexpr Shape kShapes[] = {{6, 4, 32}, {16, 8, 64}};

// The part of an engine's KV cache that holds one prompt.
class Cache {
 public:
  explicit Cache(const Shape& shape) {
    static Backend backend = make_cpu_backend({.threads = 1, .isa = {}}).value();
    const KvSpec spec{shape.kv_heads, shape.head_dim, kBlockSize, DType::bf16};
    const std::int64_t part = backend.ops.kv_block_bytes(spec), stride = part * shape.layers;
    bytes_.assign(static_cast<std::size_t>(stride * kBlocks), std::byte{1});
    for (int layer = 0; layer < shape.layers; ++layer)
      layers_.push_back({bytes_.data() + layer * part, kBlocks, stride, spec});
    layer_bytes_ = static_cast<std::size_t>(kv_exchange_bytes(spec));
  }

  BlockFormat format() const {
    return {.fingerprint = "m",
            .dtype = "bf16",
            .block_size = kBlockSize,
            .bytes = static_cast<std::int64_t>(layer_bytes_ * layers_.size())};
  }
  void read(KvLocation from, std::span<std::byte> out) const {
    for (const KvLayer& layer : layers_) {
      kv_exchange("cpu")->export_block(layer, from.number, out.first(layer_bytes_));
      out = out.subspan(layer_bytes_);
    }
  }
  NativeBlocks native() {
    const auto stride = static_cast<std::size_t>(layers_[0].stride_bytes);
    return {.layout = "cpu", .memory = [this, stride](KvLocation location) {
              return std::span(bytes_).subspan(static_cast<std::size_t>(location.number) * stride, stride);
            }};
  }
  void write(KvLocation to, std::span<const std::byte> bytes) {
    for (const KvLayer& layer : layers_) {
      kv_exchange("cpu")->import_block(layer, to.number, bytes.first(layer_bytes_));
      bytes = bytes.subspan(layer_bytes_);
    }
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<KvLayer> layers_;
  std::size_t layer_bytes_ = 0;
};

std::vector<Hash128> some_keys() {
  std::vector<Hash128> keys;
  for (int i = 0; i < kBlocks; ++i) keys.push_back({static_cast<std::uint64_t>(i), 5});
  return keys;
}

void count(benchmark::State& state, const BlockFormat& format) {
  state.SetBytesProcessed(state.iterations() * kBlocks * format.bytes);
}

void plain_copy(benchmark::State& state) {
  const BlockFormat format = Cache(kShapes[state.range(0)]).format();
  std::vector<std::byte> from(kBlocks * format.stride(), std::byte{1}), to = from;
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), to.size());
    benchmark::ClobberMemory();
  }
  count(state, format);
}

void plain_socket(benchmark::State& state) {
  const BlockFormat format = Cache(kShapes[state.range(0)]).format();
  std::vector<std::byte> from(kBlocks * format.stride(), std::byte{1}), to = from;
  int port = 0;
  const int listening = listen_at("127.0.0.1", port).value();
  std::thread sending([&] {
    PeerSocket socket(accept(listening, nullptr, nullptr));
    std::byte go;
    while (socket.receive(std::span(&go, 1))) (void)socket.send(from);
  });
  {
    PeerSocket socket = PeerSocket::connect("127.0.0.1", port).value();
    const std::byte go{};
    for (auto _ : state)
      if (!socket.send(std::span(&go, 1)) || !socket.receive(to)) state.SkipWithError("the socket broke");
  }
  sending.join();
  close(listening);
  count(state, format);
}

// Runs `step` for each block. All packed blocks share one slot.
template <class Step>
void each_block(benchmark::State& state, Step step) {
  Cache cache(kShapes[state.range(0)]);
  const BlockFormat format = cache.format();
  const std::size_t stride = format.stride();
  std::vector<std::byte> slot(slot_bytes(format), std::byte{1});
  const std::size_t room = slot.size() / stride;
  for (std::size_t i = 0; i < room; ++i) seal(format, {}, std::span(slot).subspan(i * stride, stride));
  for (auto _ : state)
    for (BlockId block = 0; block < kBlocks; ++block)
      step(cache, format, block,
           std::span(slot).subspan(static_cast<std::size_t>(block) % room * stride, stride));
  count(state, format);
}

void export_blocks(benchmark::State& state) {
  each_block(state, [](Cache& cache, const BlockFormat& format, BlockId block, std::span<std::byte> packed) {
    cache.read({.number = block}, contents(format, packed));
  });
}
void seal_blocks(benchmark::State& state) {
  each_block(state, [](Cache&, const BlockFormat& format, BlockId, std::span<std::byte> packed) {
    seal(format, {}, packed);
  });
}
void verify_blocks(benchmark::State& state) {
  each_block(state, [&](Cache&, const BlockFormat& format, BlockId, std::span<std::byte> packed) {
    if (!verify(format, {}, packed)) state.SkipWithError("a block is not what it should be");
  });
}
void import_blocks(benchmark::State& state) {
  each_block(state, [](Cache& cache, const BlockFormat& format, BlockId block, std::span<std::byte> packed) {
    cache.write({.number = block}, contents(format, std::span<const std::byte>(packed)));
  });
}

// native: whether both engines have the same memory layout.
void fetch(benchmark::State& state, bool one_host, bool native, bool ucx = false) {
  if (ucx && !open_ucx_channel()) return state.SkipWithError("no UCX here");
  Cache from(kShapes[state.range(0)]), to(kShapes[state.range(0)]);
  const BlockFormat format = from.format();
  LeaseTable leases(30);
  const auto server = BlockServer::start(
                          {.host = "127.0.0.1", .port = 0, .engine_id = "e", .format = format}, leases,
                          [&](KvLocation location, std::span<std::byte> out) { from.read(location, out); },
                          native ? from.native() : NativeBlocks{}, [] {})
                          .value();
  std::promise<LoadResult> result;
  BlockFetcher fetcher(
      format, one_host, ucx,
      [&](KvLocation location, std::span<const std::byte> bytes) { to.write(location, bytes); },
      native ? to.native() : NativeBlocks{}, [&](LoadResult got) { result.set_value(std::move(got)); });
  LoadTask task{.from = {.remote_engine_id = "e", .remote_host = "127.0.0.1", .remote_port = server->port()},
                .keys = some_keys(),
                .cancelled = std::make_shared<std::atomic<bool>>(false)};
  for (BlockId b = 0; b < kBlocks; ++b) task.blocks.push_back({.number = b});
  std::uint64_t last = 0;
  for (auto _ : state) {
    task.from.remote_request_id = std::to_string(++last);
    leases.add(task.from.remote_request_id, {.blocks = task.blocks, .keys = task.keys, .owner = last},
               now_us());
    result = {};
    fetcher.post(task);
    if (const LoadResult got = result.get_future().get(); got.loaded != kBlocks)
      state.SkipWithError(got.message.c_str());
    leases.take_ended(now_us());
  }
  count(state, format);
}

BENCHMARK(plain_copy)->DenseRange(0, 1)->UseRealTime();
BENCHMARK(plain_socket)->DenseRange(0, 1)->UseRealTime();
BENCHMARK(export_blocks)->DenseRange(0, 1)->UseRealTime();
BENCHMARK(seal_blocks)->DenseRange(0, 1)->UseRealTime();
BENCHMARK(verify_blocks)->DenseRange(0, 1)->UseRealTime();
BENCHMARK(import_blocks)->DenseRange(0, 1)->UseRealTime();
BENCHMARK_CAPTURE(fetch, shared_memory, true, true)->DenseRange(0, 1)->UseRealTime();
BENCHMARK_CAPTURE(fetch, tcp, false, true)->DenseRange(0, 1)->UseRealTime();
BENCHMARK_CAPTURE(fetch, ucx, false, true, true)->DenseRange(0, 1)->UseRealTime();
BENCHMARK_CAPTURE(fetch, tcp_other_layout, false, false)->DenseRange(0, 1)->UseRealTime();

}  // namespace
}  // namespace octavo
