#include "bench/machine_limits.h"

#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/cpu/matrix_tiles.h"
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace octavo {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{256} << 20;  // larger than any CPU cache
constexpr std::size_t kDeviceBytes = std::size_t{512} << 20;
constexpr std::int64_t kRounds = 400'000;
constexpr std::int64_t kTileRounds = 100'000;
constexpr int kWarmUps = 4;  // the first runs start threads and raise the clock

double seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Runs `count` independent chains of one instruction, so that the latency of the instruction does not limit
// the speed.
#define OCTAVO_CHAINS(count, step)                             \
  for (std::int64_t i = 0; i < kRounds; ++i) {                 \
    _Pragma("GCC unroll 24") for (int j = 0; j < count; ++j) { \
      c[j] = step;                                             \
      asm volatile("" : "+" OCTAVO_REGISTER(c[j]));            \
    }                                                          \
  }

// The functions that measure arithmetic return their number of operations.
#if defined(__x86_64__)
#define OCTAVO_REGISTER "v"

__attribute__((target("avx2"))) void read_all(const std::byte* data, std::int64_t bytes) {
  __m256i sums[8] = {};
  for (std::int64_t i = 0; i + 256 <= bytes; i += 256)
    for (int j = 0; j < 8; ++j)
      sums[j] =
          _mm256_xor_si256(sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + 32 * j)));
  for (int j = 1; j < 8; ++j) sums[0] = _mm256_xor_si256(sums[0], sums[j]);
  asm volatile("" : : "v"(sums[0]));
}
__attribute__((target("avx512f,avx512bf16"))) double pairs_512() {
  __m512 c[24] = {};
  const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80);
  OCTAVO_CHAINS(24, _mm512_dpbf16_ps(c[j], a, a))
  return double{kRounds} * 24 * 64;
}
__attribute__((target("avx512f"))) double floats_512() {
  __m512 c[24] = {};
  const __m512 a = _mm512_set1_ps(1);
  OCTAVO_CHAINS(24, _mm512_fmadd_ps(a, a, c[j]))
  return double{kRounds} * 24 * 32;
}
__attribute__((target("avx2,fma"))) double floats_256() {
  __m256 c[12] = {};
  const __m256 a = _mm256_set1_ps(1);
  OCTAVO_CHAINS(12, _mm256_fmadd_ps(a, a, c[j]))
  return double{kRounds} * 12 * 16;
}
#define OCTAVO_QUADS_256(dot)            \
  __m256i c[12] = {};                    \
  const __m256i a = _mm256_set1_epi8(1); \
  OCTAVO_CHAINS(12, dot(c[j], a, a))     \
  return double{kRounds} * 12 * 64;
__attribute__((target("avx2,avxvnni"))) double quads_256() { OCTAVO_QUADS_256(_mm256_dpbusd_avx_epi32) }
__attribute__((target("avx512vl,avx512vnni"))) double quads_256_evex() {
  OCTAVO_QUADS_256(_mm256_dpbusd_epi32)
}
__attribute__((target("avx512f,avx512vnni"))) double quads_512() {
  __m512i c[24] = {};
  const __m512i a = _mm512_set1_epi8(1);
  OCTAVO_CHAINS(24, _mm512_dpbusd_epi32(c[j], a, a))
  return double{kRounds} * 24 * 128;
}
// Multiplies tiles whose values are all 0. There are four tiles of sums, so that the latency of the
// instruction does not limit the speed.
#define OCTAVO_TILES(instruction)                                                                          \
  cpu::MatrixTilesInUse in_use(&cpu::kAmxTiles);                                                           \
  in_use.shape(2 * cpu::kMatrixRows, cpu::kMatrixBytes);                                                   \
  for (std::int64_t i = 0; i < kTileRounds; ++i)                                                           \
    asm volatile(instruction " %tmm6, %tmm4, %tmm0\n\t" instruction " %tmm7, %tmm4, %tmm1\n\t" instruction \
                             " %tmm6, %tmm5, %tmm2\n\t" instruction " %tmm7, %tmm5, %tmm3");

double pairs_on_tiles() {
  OCTAVO_TILES("tdpbf16ps")
  return double{kTileRounds} * 4 * 16 * 16 * 64;
}
double quads_on_tiles() {
  OCTAVO_TILES("tdpbusd")
  return double{kTileRounds} * 4 * 16 * 16 * 128;
}
double calculate(CpuIsa isa, Arithmetic arithmetic) {
  if (isa == CpuIsa::amx && arithmetic == Arithmetic::bf16) return pairs_on_tiles();
  if (isa == CpuIsa::amx && arithmetic == Arithmetic::int8) return quads_on_tiles();
  const bool dot = isa == CpuIsa::avx512_bf16 || isa == CpuIsa::amx || isa == CpuIsa::amx_modelled;
  if (arithmetic == Arithmetic::int8 && (dot || isa == CpuIsa::avx512_vnni)) return quads_512();
  if (arithmetic == Arithmetic::bf16 && dot) return pairs_512();
  if (arithmetic == Arithmetic::int8 && isa == CpuIsa::avx_vnni)
    return __builtin_cpu_supports("avx512vnni") ? quads_256_evex() : quads_256();
  return isa == CpuIsa::avx2 || isa == CpuIsa::avx_vnni ? floats_256() : floats_512();
}
#elif defined(__aarch64__)
#define OCTAVO_REGISTER "w"

void read_all(const std::byte* data, std::int64_t bytes) {
  uint8x16_t sums[8] = {};
  for (std::int64_t i = 0; i + 128 <= bytes; i += 128)
    for (int j = 0; j < 8; ++j)
      sums[j] = veorq_u8(sums[j], vld1q_u8(reinterpret_cast<const std::uint8_t*>(data) + i + 16 * j));
  for (int j = 1; j < 8; ++j) sums[0] = veorq_u8(sums[0], sums[j]);
  asm volatile("" : : "w"(sums[0]));
}
double floats_128() {
  float32x4_t c[24] = {};
  const float32x4_t a = vdupq_n_f32(1);
  OCTAVO_CHAINS(24, vfmaq_f32(c[j], a, a))
  return double{kRounds} * 24 * 8;
}
__attribute__((target("arch=armv8.2-a+bf16"))) double pairs_128() {
  float32x4_t c[24] = {};
  uint32x4_t ones = vdupq_n_u32(0x3f803f80);
  asm volatile("" : "+w"(ones));  // without this, g++ 12 converts the constant to another format
  const bfloat16x8_t a = vreinterpretq_bf16_u32(ones);
  OCTAVO_CHAINS(24, vbfdotq_f32(c[j], a, a))
  return double{kRounds} * 24 * 16;
}
__attribute__((target("arch=armv8.2-a+dotprod"))) double quads_128() {
  int32x4_t c[24] = {};
  const int8x16_t a = vdupq_n_s8(1);
  OCTAVO_CHAINS(24, vdotq_s32(c[j], a, a))
  return double{kRounds} * 24 * 32;
}
double calculate(CpuIsa isa, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::int8 && isa != CpuIsa::neon) return quads_128();
  return arithmetic == Arithmetic::bf16 && isa == CpuIsa::neon_bf16 ? pairs_128() : floats_128();
}
#endif

}  // namespace

Result<CpuIsa> usable_isa(std::string_view wanted) {
  std::optional<CpuIsa> best;
  for (const CpuIsa isa : kCpuIsas) {
    if (!wanted.empty() && wanted != name(isa)) continue;
    if (make_cpu_backend({.threads = 1, .isa = isa})) best = isa;
  }
  if (best) return *best;
  return invalid("isa", "{} is not available: this processor or this build lacks it", wanted);
}

Result<HostLimits> HostLimits::make(int threads, CpuIsa isa) {
  TRY(Buffer memory, allocate_host(kMemoryBytes));
  std::memset(memory.data(), 1, kMemoryBytes);
  HostLimits limits(threads == 0 ? usable_processors() : threads, isa, std::move(memory));
  for (int i = 0; i < kWarmUps; ++i) limits.peak(Arithmetic::f32);
  return limits;
}

double HostLimits::seconds_of(const std::function<void()>& work) {
  const clockid_t clock = pool_->size() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  const double begin = seconds(clock);
  work();
  return seconds(clock) - begin;
}

double HostLimits::bandwidth() {
  const auto share = static_cast<std::int64_t>(kMemoryBytes) / pool_->size() / 4096 * 4096;
  const auto* memory = static_cast<const std::byte*>(memory_.data());
  const double time = seconds_of([&] {
    pool_->for_units(pool_->size(), [&](int, std::int64_t i) { read_all(memory + i * share, share); });
  });
  return static_cast<double>(share * pool_->size()) / time;
}

double HostLimits::peak(Arithmetic arithmetic) {
  std::atomic<double> operations{0};
  const double time = seconds_of([&] {
    pool_->for_units(pool_->size(), [&](int, std::int64_t) { operations += calculate(isa_, arithmetic); });
  });
  return operations / time;
}

Result<DeviceLimits> DeviceLimits::make(Backend& backend) {
  TRY(Buffer from, backend.device->allocate(kDeviceBytes));
  TRY(Buffer to, backend.device->allocate(kDeviceBytes));
  return DeviceLimits(backend, std::move(from), std::move(to));
}

double DeviceLimits::seconds_of(const std::function<void()>& work) {
  backend_.stream->synchronize();
  const double begin = seconds(CLOCK_MONOTONIC);
  work();
  backend_.stream->synchronize();
  return seconds(CLOCK_MONOTONIC) - begin;
}

double DeviceLimits::bandwidth() {
  const auto all = [](const Buffer& b) { return b.view(DType::u8, {static_cast<std::int64_t>(b.bytes())}); };
  const double time = seconds_of([&] { backend_.device->copy(*backend_.stream, all(to_), all(from_)); });
  return 2 * static_cast<double>(kDeviceBytes) / time;
}

}  // namespace octavo
