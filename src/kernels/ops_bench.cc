// Operators of the CPU backend at the shapes of Llama-3.2-1B, each against the machine's limits measured
// between its own runs: bytes over read bandwidth, operations over peak (GFLOP/s of quantised products count
// integers).
//
//   ops_bench [threads [avx2|avx512|avx512_vnni|avx512_bf16 [quantised|matmul|attention|rows]]]
#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/test_quant.h"

namespace octavo {
namespace {

bool processor_time = false;

double now() {
  timespec time{};
  clock_gettime(processor_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds_of(const std::function<void()>& work) {
  const double begin = now();
  work();
  return now() - begin;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

__attribute__((target("avx2"))) std::uint64_t read_all(const std::byte* data, std::int64_t bytes) {
  __m256i sums[8] = {};
  for (std::int64_t i = 0; i + 256 <= bytes; i += 256)
    for (int j = 0; j < 8; ++j)
      sums[j] =
          _mm256_xor_si256(sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + 32 * j)));
  for (int j = 1; j < 8; ++j) sums[0] = _mm256_xor_si256(sums[0], sums[j]);
  return static_cast<std::uint64_t>(_mm256_extract_epi64(sums[0], 0));
}

// Independent chains of dot products or fused multiply-adds; returns the operations done.
#define OCTAVO_CHAINS(count, step)                             \
  for (std::int64_t i = 0; i < rounds; ++i) {                  \
    _Pragma("GCC unroll 24") for (int j = 0; j < count; ++j) { \
      c[j] = step;                                             \
      asm volatile("" : "+v"(c[j]));                           \
    }                                                          \
  }
__attribute__((target("avx512f,avx512bf16"))) double dot_peak(std::int64_t rounds) {
  __m512 c[24] = {};
  const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80);
  OCTAVO_CHAINS(24, _mm512_dpbf16_ps(c[j], a, a))
  return static_cast<double>(rounds) * 24 * 64;
}
__attribute__((target("avx512f"))) double fma512_peak(std::int64_t rounds) {
  __m512 c[24] = {};
  const __m512 a = _mm512_set1_ps(1);
  OCTAVO_CHAINS(24, _mm512_fmadd_ps(a, a, c[j]))
  return static_cast<double>(rounds) * 24 * 32;
}
__attribute__((target("avx2,fma"))) double fma256_peak(std::int64_t rounds) {
  __m256 c[12] = {};
  const __m256 a = _mm256_set1_ps(1);
  OCTAVO_CHAINS(12, _mm256_fmadd_ps(a, a, c[j]))
  return static_cast<double>(rounds) * 12 * 16;
}

__attribute__((target("avx512f,avx512vnni"))) double quads_peak(std::int64_t rounds) {
  __m512i c[24] = {};
  const __m512i a = _mm512_set1_epi8(1);
  OCTAVO_CHAINS(24, _mm512_dpbusd_epi32(c[j], a, a))
  return static_cast<double>(rounds) * 24 * 128;
}

bool has_quads(CpuIsa isa) { return isa == CpuIsa::avx512_vnni || isa == CpuIsa::avx512_bf16; }

// In the instruction set's best product for bf16 weights, or for bytes.
double peak_of(CpuIsa isa, bool bytes, std::int64_t rounds) {
  if (bytes && has_quads(isa)) return quads_peak(rounds);
  if (isa == CpuIsa::avx2) return fma256_peak(rounds);
  return isa == CpuIsa::avx512_bf16 ? dot_peak(rounds) : fma512_peak(rounds);
}

class Machine {
 public:
  explicit Machine(int threads) : pool_(threads), memory_(allocate_host(kBytes).value()) {
    std::memset(memory_.data(), 1, kBytes);
  }
  // Bytes per second that all threads read from memory.
  double bandwidth() {
    const auto share = static_cast<std::int64_t>(kBytes) / pool_.size() / 4096 * 4096;
    const double seconds = seconds_of([&] {
      pool_.run([&](int rank) {
        sink_ += read_all(static_cast<std::byte*>(memory_.data()) + rank * share, share);
      });
    });
    return static_cast<double>(share * pool_.size()) / seconds;
  }
  // Operations per second of all threads.
  double peak(CpuIsa isa, bool bytes = false) {
    std::atomic<double> operations{0};
    const double seconds =
        seconds_of([&] { pool_.run([&](int) { operations += peak_of(isa, bytes, 1'000'000); }); });
    return operations / seconds;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{512} << 20;
  ThreadPool pool_;
  Buffer memory_;
  std::atomic<std::uint64_t> sink_{0};
};

struct Bench {
  Backend& backend;
  Machine& machine;
  CpuIsa isa;
  bool on_bytes = false;  // operations

  // Medians of 9 runs, each between a reading of the bandwidth and one of the peak.
  void report(std::string_view what, double bytes, double operations,
              const std::function<void()>& work) const {
    work();
    std::vector<double> seconds, bandwidth_share, peak_share;
    for (int i = 0; i < 9; ++i) {
      const double bandwidth = machine.bandwidth();
      const double peak = machine.peak(isa, on_bytes);
      seconds.push_back(seconds_of(work));
      bandwidth_share.push_back(bytes / seconds.back() / bandwidth);
      peak_share.push_back(operations / seconds.back() / peak);
    }
    const double t = median(seconds);
    fmt::print("{:<44} {:>10.3f} ms {:>8.1f} GB/s {:>5.2f} of bandwidth {:>9.1f} GFLOP/s {:>5.2f} of peak\n",
               what, t * 1e3, bytes / t / 1e9, median(bandwidth_share), operations / t / 1e9,
               median(peak_share));
  }
};

struct Matrix {
  const char* name;
  std::int64_t rows, cols;
  int copies;  // enough that a pass over all does not fit in a cache
};
constexpr Matrix kMatrices[] = {{"qkv", 3072, 2048, 24},
                                {"o", 2048, 2048, 36},
                                {"gate_up", 16384, 2048, 6},
                                {"down", 2048, 8192, 12},
                                {"lm_head", 128256, 2048, 1}};

void bench_matmul(const Bench& bench) {
  const Ops& ops = bench.backend.ops;
  for (const Matrix& matrix : kMatrices) {
    const std::size_t bytes = static_cast<std::size_t>(matrix.rows * matrix.cols) * 2;
    const Buffer source = allocate_host(bytes).value();
    auto* numbers = static_cast<BFloat16*>(source.data());
    for (std::int64_t i = 0; i < matrix.rows * matrix.cols; ++i)
      numbers[i] = to_bf16(static_cast<float>(i % 251) / 251 - 0.5f);
    const std::vector<MatrixPart> parts{{.values = source.view(DType::bf16, {matrix.rows, matrix.cols})}};
    std::vector<WeightPtr> weights;
    const double prepare_seconds = seconds_of([&] {
      for (int i = 0; i < matrix.copies; ++i)
        weights.push_back(ops.prepare(*bench.backend.device, {parts, DType::bf16}).value());
    });
    fmt::print("{:<44} {:>10.3f} ms {:>8.1f} GB/s\n", fmt::format("prepare {}", matrix.name),
               prepare_seconds * 1e3 / matrix.copies,
               static_cast<double>(bytes) * matrix.copies / prepare_seconds / 1e9);
    for (const std::int64_t m : {1, 4, 16, 64, 512}) {
      if (m > 64 && matrix.copies == 1) continue;
      Buffer x = allocate_host(static_cast<std::size_t>(m * matrix.cols) * 2).value();
      Buffer y = allocate_host(static_cast<std::size_t>(m * matrix.rows) * 4).value();
      const View xv = x.view(weights[0]->activation(), {m, matrix.cols});
      const View yv = y.view(DType::f32, {m, matrix.rows});
      const std::size_t count = m > 64 ? 2 : weights.size();
      bench.report(fmt::format("matmul {} m={}", matrix.name, m), static_cast<double>(bytes * count),
                   2.0 * static_cast<double>(m * matrix.rows * matrix.cols) * static_cast<double>(count),
                   [&] {
                     for (std::size_t i = 0; i < count; ++i)
                       ops.matmul(*bench.backend.stream, {.x = xv, .w = *weights[i], .y = yv});
                   });
    }
  }
}

// One shape in every quantised format; the peak is that of products of bytes.
void bench_quantised(Bench bench) {
  bench.on_bytes = true;
  const Backend& backend = bench.backend;
  const Ops& ops = backend.ops;
  constexpr std::int64_t kRows = 16384, kCols = 2048, kDistinct = 64;
  constexpr int kCopies = 8;
  TestRandom random(1);
  for (const Encoding encoding : kQuantisedEncodings) {
    const TestPart part =
        block_shape(encoding).elements > 1
            ? random_blocks(random, encoding, kDistinct, kCols)
            : random_codes(random, encoding, kDistinct, kCols, encoding == Encoding::int8 ? 1 : 16, false);
    const std::vector<MatrixPart> parts(kRows / kDistinct, part.part());
    std::vector<WeightPtr> weights;
    for (int i = 0; i < kCopies; ++i)
      weights.push_back(ops.prepare(*backend.device, {parts, DType::bf16}).value());
    for (const std::int64_t m : {1, 4, 16, 64, 512}) {
      const Buffer x = allocate_host(static_cast<std::size_t>(m * kCols) * 2).value();
      const Buffer y = allocate_host(static_cast<std::size_t>(m * kRows) * 4).value();
      const std::size_t count = m > 64 ? 2 : weights.size();
      bench.report(fmt::format("matmul {} gate_up m={}", name(encoding), m),
                   static_cast<double>(weights[0]->bytes() * count),
                   2.0 * static_cast<double>(m * kRows * kCols) * static_cast<double>(count), [&] {
                     for (std::size_t i = 0; i < count; ++i)
                       ops.matmul(*backend.stream, {.x = x.view(DType::bf16, {m, kCols}),
                                                    .w = *weights[i],
                                                    .y = y.view(DType::f32, {m, kRows})});
                   });
    }
  }
}

void bench_attention(const Bench& bench) {
  const Ops& ops = bench.backend.ops;
  struct Case {
    const char* name;
    int sequences, queries, length, layers;
    int shared = 0;  // tokens that all sequences begin with, in the same blocks
    DType dtype = DType::bf16;
  };
  for (const Case& c :
       {Case{"decode 1 x 4096", 1, 1, 4096, 32}, Case{"decode 16 x 4096", 16, 1, 4096, 4},
        Case{"decode 64 x 512", 64, 1, 512, 8}, Case{"decode 16 x 2112", 16, 1, 2112, 6},
        Case{"decode 16 x 2112, 2000 shared", 16, 1, 2112, 6, 2000},
        Case{"decode 16 x 4096 f8_e4m3", 16, 1, 4096, 4, 0, DType::f8_e4m3},
        Case{"decode 16 x 4096 i8", 16, 1, 4096, 4, 0, DType::i8}, Case{"prefill 512 of 512", 1, 512, 512, 1},
        Case{"prefill 512 of 4096", 1, 512, 4096, 1}, Case{"prefill 4096", 1, 4096, 4096, 1}}) {
    const KvSpec spec{.kv_heads = 8, .head_dim = 64, .block_size = 16, .dtype = c.dtype};
    const int blocks_each = c.length / spec.block_size;
    const int blocks = blocks_each * c.sequences;
    const std::int64_t block_bytes = ops.kv_block_bytes(spec);
    std::vector<Buffer> pools;
    for (int i = 0; i < c.layers; ++i) {
      pools.push_back(allocate_host(static_cast<std::size_t>(blocks * block_bytes)).value());
      std::memset(pools.back().data(), 0, pools.back().bytes());
    }
    const int n = c.sequences * c.queries;
    const auto plan = ops.make_attention_plan(
        *bench.backend.device,
        {.max_tokens = n, .max_sequences = c.sequences, .max_length = c.length, .q_heads = 32, .kv = spec});
    std::vector<std::int32_t> starts, lengths(static_cast<std::size_t>(c.sequences), c.length),
        table(static_cast<std::size_t>(blocks));
    for (int s = 0; s <= c.sequences; ++s) starts.push_back(s * c.queries);
    std::iota(table.begin(), table.end(), 0);
    std::reverse(table.begin(), table.end());
    for (int i = blocks_each; i < blocks; ++i)
      if (i % blocks_each < c.shared / spec.block_size)
        table[static_cast<std::size_t>(i)] = table[static_cast<std::size_t>(i % blocks_each)];
    Buffer q = allocate_host(static_cast<std::size_t>(n) * 2048 * 2).value();
    Buffer out = allocate_host(static_cast<std::size_t>(n) * 2048 * 2).value();
    // Each query of a head meets the tokens up to its own twice (keys and values), 2 operations a number.
    const double met = static_cast<double>(n) * (c.length - (c.queries - 1) / 2.0);
    bench.report(fmt::format("attention {} ({} layers)", c.name, c.layers),
                 static_cast<double>(blocks * block_bytes) * c.layers, met * 32 * 64 * 4 * c.layers, [&] {
                   ops.plan_attention(*bench.backend.stream, {starts, lengths, table, blocks_each}, *plan);
                   for (const Buffer& pool : pools)
                     ops.attention(*bench.backend.stream, {.q = q.view(DType::bf16, {n, 32, 64}),
                                                           .cache = {static_cast<std::byte*>(pool.data()),
                                                                     blocks, block_bytes, spec},
                                                           .plan = *plan,
                                                           .scale = 0.125f,
                                                           .out = out.view(DType::bf16, {n, 2048})});
                 });
  }
}

void bench_rows(const Bench& bench) {
  const Ops& ops = bench.backend.ops;
  Stream& stream = *bench.backend.stream;
  for (const std::int64_t n : {1, 16, 512}) {
    const auto rows = static_cast<std::size_t>(n);
    const auto floats = static_cast<double>(n);
    Buffer residual = allocate_host(rows * 2048 * 4).value();
    Buffer narrow = allocate_host(rows * 16384 * 2).value();
    Buffer wide = allocate_host(rows * 8192 * 2).value();
    Buffer weight = allocate_host(2048 * 4).value();
    const Norm norm{NormKind::rms, 1e-5f, weight.view(DType::f32, {2048}), {}};
    bench.report(fmt::format("add_norm n={} (100 calls)", n), floats * 2048 * 12 * 100, 0, [&] {
      for (int i = 0; i < 100; ++i)
        ops.add_norm(stream, {.residual = residual.view(DType::f32, {n, 2048}),
                              .delta = wide.view(DType::bf16, {n, 2048}),
                              .norm = norm,
                              .out = narrow.view(DType::bf16, {n, 2048})});
    });
    bench.report(fmt::format("activate n={} (100 calls)", n), floats * 8192 * 6 * 100, 0, [&] {
      for (int i = 0; i < 100; ++i)
        ops.activate(stream,
                     {.x = narrow.view(DType::bf16, {n, 16384}), .y = wide.view(DType::bf16, {n, 8192})});
    });
    const KvSpec spec{.kv_heads = 8, .head_dim = 64, .block_size = 16, .dtype = DType::bf16};
    Buffer pool = allocate_host(static_cast<std::size_t>(ops.kv_block_bytes(spec)) * 32).value();
    Buffer angles = allocate_host(512 * 32 * 4).value();
    std::vector<std::int32_t> positions(rows);
    std::vector<std::int64_t> slots(rows);
    std::iota(positions.begin(), positions.end(), 0);
    std::iota(slots.begin(), slots.end(), 0);
    const View angle = angles.view(DType::f32, {512, 32});
    bench.report(fmt::format("qkv_store n={} (100 calls)", n), floats * 3072 * 4 * 100, 0, [&] {
      for (int i = 0; i < 100; ++i)
        ops.qkv_store(stream,
                      {.qkv = narrow.view(DType::bf16, {n, 3072}),
                       .q_heads = 32,
                       .rope = {.cos = angle, .sin = angle, .rotary_dim = 64},
                       .positions = View::of(std::span(positions)),
                       .slots = View::of(std::span(slots)),
                       .cache = {static_cast<std::byte*>(pool.data()), 32, ops.kv_block_bytes(spec), spec},
                       .q_out = wide.view(DType::bf16, {n, 32, 64})});
    });
  }
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  using namespace octavo;
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::string_view wanted = argc > 2 ? argv[2] : "";
  std::optional<Backend> backend;
  CpuIsa isa{};
  for (const CpuIsa each : kCpuIsas) {
    if (!wanted.empty() && wanted != name(each)) continue;
    auto made = make_cpu_backend({.threads = threads, .isa = each});
    if (!made) continue;
    isa = each;
    backend.emplace(*std::move(made));
  }
  if (!backend) {
    fmt::print(stderr, "this processor has none of the instruction sets asked for\n");
    return 1;
  }
  processor_time = threads == 1;
  Machine machine(threads == 0 ? usable_processors() : threads);
  fmt::print("{}: reads {:.1f} GB/s, peak {:.0f} GFLOP/s\n", backend->device->name(),
             machine.bandwidth() / 1e9, machine.peak(isa) / 1e9);
  const Bench bench{.backend = *backend, .machine = machine, .isa = isa};
  const std::string_view part = argc > 3 ? argv[3] : "";
  if (part.empty() || part == "quantised") bench_quantised(bench);
  if (part.empty() || part == "matmul") bench_matmul(bench);
  if (part.empty() || part == "attention") bench_attention(bench);
  if (part.empty() || part == "rows") bench_rows(bench);
}
