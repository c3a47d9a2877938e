// Measures how fast matrices of a checkpoint are unpacked from memory, in GB/s of file bytes on one thread.
// Compares fp8, GPTQ and AWQ with bf16 (which is only checked for NaN and infinity) and with a memcpy.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>

#include "base/check.h"
#include "weights/packed_matrix.h"

namespace octavo {
namespace {

constexpr std::int64_t kRows = 2048, kCols = 8192, kBlock = 128;

// Random bytes that are finite numbers in every format.
std::vector<std::byte> some_bytes(std::int64_t count) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0x3b);
  return bytes;
}

void run(benchmark::State& state, std::int64_t bytes, auto&& once) {
  for (auto _ : state) once();
  state.SetBytesProcessed(state.iterations() * bytes);
}

void copy(benchmark::State& state) {
  const std::vector<std::byte> from = some_bytes(kRows * kCols);
  std::vector<std::byte> to(from.size());
  run(state, std::ssize(from), [&] {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
  });
}
BENCHMARK(copy);

void bf16(benchmark::State& state) {
  ThreadPool pool(1);
  const std::vector<std::byte> bytes = some_bytes(kRows * kCols * 2);
  const StoredTensor tensor{
      .name = "a.weight", .format = "BF16", .dtype = DType::bf16, .shape = {kRows, kCols}, .bytes = bytes};
  run(state, std::ssize(bytes), [&] { CHECK(check_finite(tensor, pool)); });
}
BENCHMARK(bf16);

void packed(benchmark::State& state, const PackedFormat& format, std::vector<StoredTensor> tensors) {
  std::int64_t bytes = 0;
  std::vector<std::vector<std::byte>> held;
  for (StoredTensor& tensor : tensors) {
    std::int64_t count = tensor.dtype ? 4 : 1;
    for (const std::int64_t extent : tensor.shape) count *= extent;
    tensor.bytes = held.emplace_back(some_bytes(count));
    bytes += count;
  }
  const std::vector<StoredTensor> joined = join_packed(std::move(tensors), format).value();
  ThreadPool pool(1);
  run(state, bytes, [&] { benchmark::DoNotOptimize(unpack(joined[0], pool).value()); });
}

void fp8(benchmark::State& state) {
  packed(state, {.packing = Packing::fp8, .block_rows = kBlock, .block_cols = kBlock},
         {{.name = "a.weight", .format = "F8_E4M3", .shape = {kRows, kCols}},
          {.name = "a.weight_scale_inv",
           .format = "F32",
           .dtype = DType::f32,
           .shape = {kRows / kBlock, kCols / kBlock}}});
}
BENCHMARK(fp8);

void gptq(benchmark::State& state) {
  packed(state, {.packing = Packing::gptq, .bits = 4, .group = kBlock},
         {{.name = "a.qweight", .format = "I32", .dtype = DType::i32, .shape = {kCols / 8, kRows}},
          {.name = "a.scales", .format = "F32", .dtype = DType::f32, .shape = {kCols / kBlock, kRows}},
          {.name = "a.qzeros", .format = "I32", .dtype = DType::i32, .shape = {kCols / kBlock, kRows / 8}}});
}
BENCHMARK(gptq);

void awq(benchmark::State& state) {
  packed(state, {.packing = Packing::awq, .bits = 4, .group = kBlock},
         {{.name = "a.qweight", .format = "I32", .dtype = DType::i32, .shape = {kCols, kRows / 8}},
          {.name = "a.scales", .format = "F32", .dtype = DType::f32, .shape = {kCols / kBlock, kRows}},
          {.name = "a.qzeros", .format = "I32", .dtype = DType::i32, .shape = {kCols / kBlock, kRows / 8}}});
}
BENCHMARK(awq);

}  // namespace
}  // namespace octavo
