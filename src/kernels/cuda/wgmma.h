// Products of small matrices in one warpgroup on Hopper's tensor cores: D[64, N] += A[64, 16] * B[16, N],
// with 16-bit inputs and f32 sums (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate
// Instructions", wgmma.mma_async.m64nNk16). B is in shared memory; A is in shared memory or in registers.
// With e4m3 inputs (T is F8), an instruction has 32 columns of A, and both operands are in shared memory.
// The header also has asynchronous copies to shared memory.
//
// Operands in shared memory are tiles. A row of a tile has 128 bytes, which are 64 numbers (128 in e4m3)
// along the dimension of the sum. A group of 8 rows has 1,024 bytes and is aligned to this size. Chunk c (16
// bytes) of row r is stored at chunk c ^ (r % 8) of the row ("128-byte swizzle"), so that equal chunks of
// eight rows are in different banks.
//
// A tile can also be used as transposed B ("N-major"). Then the rows of the tile are along the sum, and the
// 64 numbers of a row are columns of D.
//
// A in registers consists of the 16 rows of a warp, in the layout of mma.h. The registers of D, with g =
// lane / 4, t = lane % 4, and w the index of the warp in the warpgroup, are:
//   d[4j], d[4j + 1] = D[16w + g][8j + 2t, 8j + 2t + 1]
//   d[4j + 2], d[4j + 3] = D[16w + g + 8][8j + 2t, 8j + 2t + 1]
#pragma once

#include "kernels/cuda/gpu.h"

namespace octavo::cuda {

constexpr int kWarpgroup = 128;
constexpr int kTileColumns = 64;
constexpr int kTileRowBytes = 128;
constexpr std::size_t kSwizzleBytes = 1024;  // alignment of a swizzled tile

// Returns the byte offset of a chunk of 16 bytes in a tile.
__device__ inline int swizzled(int row, int chunk) { return row * kTileRowBytes + ((chunk ^ row % 8) * 16); }

// Returns the registers of several tiles of D as one array, for the operands of an instruction.
template <int kTiles>
__device__ inline float (&registers_of(float (&d)[kTiles][4]))[4 * kTiles] {
  return reinterpret_cast<float(&)[4 * kTiles]>(d);
}

#ifdef __CUDACC__

// Kernels with wgmma are compiled for all targets, but run only on targets that support wgmma.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDA_ARCH__)
#define OCTAVO_WGMMA 1
#else
#define OCTAVO_WGMMA 0
#endif

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

// Starts a copy of kBytes (16 or 8) bytes from global to shared memory, or writes zeros if `valid` is
// false. The copy is complete after wait_copies().
template <int kBytes = 16>
__device__ inline void copy_async(void* shared, const void* global, bool valid) {
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                 "r"(valid ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)), "l"(global),
                 "n"(kBytes), "r"(valid ? kBytes : 0)
                 : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until all groups of copies are complete, except the last kGroups groups.
template <int kGroups>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}
// Makes the writes of this thread to shared memory visible to products that begin after the next barrier.
__device__ inline void show_to_products() {
#if OCTAVO_WGMMA
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
// Barrier of `threads` threads of the thread block, with 1 <= id <= 15. named_barrier() waits;
// named_arrival() only arrives.
__device__ inline void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_arrival(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Returns the descriptor of an operand: the 16 columns (32 in e4m3) that begin at `tile`, or 16 rows of a
// transposed tile.
__device__ inline std::uint64_t operand(const void* tile) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62, kGroupBytes = std::uint64_t{kSwizzleBytes >> 4} << 32;
  return kSwizzle128 | kGroupBytes | std::uint64_t{1} << 16 | ((shared_address(tile) & 0x3ffff) >> 4);
}

// Sets the number of registers per thread. All threads of a warpgroup must call it. The number can grow
// only after other warpgroups have released registers.
template <int kCount>
__device__ inline void give_registers() {
#if OCTAVO_WGMMA
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}
template <int kCount>
__device__ inline void take_registers() {
#if OCTAVO_WGMMA
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
#endif
}

// Begins products. D and operands in registers must not be used before wait_products().
__device__ inline void begin_products() {
#if OCTAVO_WGMMA
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ inline void commit_products() {
#if OCTAVO_WGMMA
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Waits for all products except the products of the last kGroups groups. The asm constraint marks D as
// changed.
template <int kGroups, int kCount>
__device__ inline void wait_products(float (&d)[kCount]) {
#if OCTAVO_WGMMA
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
#endif
}

// Keeps an operand in its registers until this point. Call it after wait_products().
template <int kCount>
__device__ inline void keep_until_here(const std::uint32_t (&a)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" ::"r"(a[i]) : "memory");
}

#define OCTAVO_D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define OCTAVO_D16(i) OCTAVO_D4(i), OCTAVO_D4((i) + 4), OCTAVO_D4((i) + 8), OCTAVO_D4((i) + 12)
#define OCTAVO_R4 "%0, %1, %2, %3"
#define OCTAVO_R8 OCTAVO_R4 ", %4, %5, %6, %7"
#define OCTAVO_R16 OCTAVO_R8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define OCTAVO_R32 OCTAVO_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define OCTAVO_R64                                                                                          \
  OCTAVO_R32                                                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define OCTAVO_R96                                                                                          \
  OCTAVO_R64                                                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, " \
  "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
// `registers` are the registers of D; a, b and p are the numbers of the next three asm operands; `layouts`
// says which operands in shared memory are transposed (never in e4m3).
#define OCTAVO_PRODUCT(shape, type, registers, a, b, p, layouts)                                          \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " p ", 0;\nwgmma.mma_async.sync.aligned." shape ".f32." type "." type \
  " {" registers "}, " a ", " b ", p, 1, 1" layouts ";\n}"
#define OCTAVO_PRODUCT_OF(kColumns, shape, type, registers, a, b, p, layouts, inputs, ...)                   \
  if constexpr (kN == kColumns)                                                                             \
  asm volatile(OCTAVO_PRODUCT(shape, type, registers, a, b, p, layouts)                                       \
               : __VA_ARGS__                                                                                \
               : inputs()                                                                                   \
               : "memory")
#define OCTAVO_A_IN_SHARED() "l"(a), "l"(b), "r"(adds ? 1 : 0)
#define OCTAVO_A_IN_REGISTERS() "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds ? 1 : 0)
#define OCTAVO_PRODUCTS(type)                                                                               \
  OCTAVO_PRODUCT_OF(8, "m64n8k16", type, OCTAVO_R4, "%4", "%5", "%6", ", 0, 0", OCTAVO_A_IN_SHARED,         \
                    OCTAVO_D4(0));                                                                          \
  OCTAVO_PRODUCT_OF(16, "m64n16k16", type, OCTAVO_R8, "%8", "%9", "%10", ", 0, 0", OCTAVO_A_IN_SHARED,      \
                    OCTAVO_D4(0), OCTAVO_D4(4));                                                            \
  OCTAVO_PRODUCT_OF(32, "m64n32k16", type, OCTAVO_R16, "%16", "%17", "%18", ", 0, 0", OCTAVO_A_IN_SHARED,   \
                    OCTAVO_D16(0));                                                                         \
  OCTAVO_PRODUCT_OF(64, "m64n64k16", type, OCTAVO_R32, "%32", "%33", "%34", ", 0, 0", OCTAVO_A_IN_SHARED,   \
                    OCTAVO_D16(0), OCTAVO_D16(16));                                                         \
  OCTAVO_PRODUCT_OF(128, "m64n128k16", type, OCTAVO_R64, "%64", "%65", "%66", ", 0, 0", OCTAVO_A_IN_SHARED, \
                    OCTAVO_D16(0), OCTAVO_D16(16), OCTAVO_D16(32), OCTAVO_D16(48));                         \
  OCTAVO_PRODUCT_OF(192, "m64n192k16", type, OCTAVO_R96, "%96", "%97", "%98", ", 0, 0", OCTAVO_A_IN_SHARED, \
                    OCTAVO_D16(0), OCTAVO_D16(16), OCTAVO_D16(32), OCTAVO_D16(48), OCTAVO_D16(64),          \
                    OCTAVO_D16(80))
#define OCTAVO_PRODUCTS_OF_REGISTERS(type)                                                          \
  OCTAVO_PRODUCT_OF(8, "m64n8k16", type, OCTAVO_R4, "{%4, %5, %6, %7}", "%8", "%9", ", 0",          \
                    OCTAVO_A_IN_REGISTERS, OCTAVO_D4(0));                                           \
  OCTAVO_PRODUCT_OF(32, "m64n32k16", type, OCTAVO_R16, "{%16, %17, %18, %19}", "%20", "%21", ", 0", \
                    OCTAVO_A_IN_REGISTERS, OCTAVO_D16(0));                                          \
  OCTAVO_PRODUCT_OF(64, "m64n64k16", type, OCTAVO_R32, "{%32, %33, %34, %35}", "%36", "%37", ", 0", \
                    OCTAVO_A_IN_REGISTERS, OCTAVO_D16(0), OCTAVO_D16(16))
#define OCTAVO_PRODUCT_OF_ROWS(type)                                                                \
  OCTAVO_PRODUCT_OF(64, "m64n64k16", type, OCTAVO_R32, "{%32, %33, %34, %35}", "%36", "%37", ", 1", \
                    OCTAVO_A_IN_REGISTERS, OCTAVO_D16(0), OCTAVO_D16(16))

#define OCTAVO_PRODUCTS_OF_BYTES()                                                                      \
  OCTAVO_PRODUCT_OF(8, "m64n8k32", "e4m3", OCTAVO_R4, "%4", "%5", "%6", "", OCTAVO_A_IN_SHARED,         \
                    OCTAVO_D4(0));                                                                      \
  OCTAVO_PRODUCT_OF(32, "m64n32k32", "e4m3", OCTAVO_R16, "%16", "%17", "%18", "", OCTAVO_A_IN_SHARED,   \
                    OCTAVO_D16(0));                                                                     \
  OCTAVO_PRODUCT_OF(64, "m64n64k32", "e4m3", OCTAVO_R32, "%32", "%33", "%34", "", OCTAVO_A_IN_SHARED,   \
                    OCTAVO_D16(0), OCTAVO_D16(16));                                                     \
  OCTAVO_PRODUCT_OF(128, "m64n128k32", "e4m3", OCTAVO_R64, "%64", "%65", "%66", "", OCTAVO_A_IN_SHARED, \
                    OCTAVO_D16(0), OCTAVO_D16(16), OCTAVO_D16(32), OCTAVO_D16(48))

// Computes d = a * b, or d += a * b if `adds` is true. With e4m3, D has 8, 32, 64 or 128 columns.
template <class T, int kN>
__device__ inline void multiply_tiles(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b, bool adds) {
#if OCTAVO_WGMMA
  if constexpr (std::is_same_v<T, F8>) {
    static_assert(kN == 8 || kN == 32 || kN == 64 || kN == 128);
    OCTAVO_PRODUCTS_OF_BYTES();
  } else if constexpr (std::is_same_v<T, Bf16>) {
    OCTAVO_PRODUCTS("bf16");
  } else {
    OCTAVO_PRODUCTS("f16");
  }
#endif
}
// Computes the same product with A in registers. D has 8, 32 or 64 columns.
template <class T, int kN>
__device__ inline void multiply_tiles(float (&d)[kN / 2], const std::uint32_t (&a)[4], std::uint64_t b, bool adds) {
  static_assert(kN == 8 || kN == 32 || kN == 64);
#if OCTAVO_WGMMA
  if constexpr (std::is_same_v<T, Bf16>) {
    OCTAVO_PRODUCTS_OF_REGISTERS("bf16");
  } else {
    OCTAVO_PRODUCTS_OF_REGISTERS("f16");
  }
#endif
}
// Multiplies with a transposed tile as B; D has 64 columns.
template <class T>
__device__ inline void multiply_rows(float (&d)[kTileColumns / 2], const std::uint32_t (&a)[4], std::uint64_t b, bool adds) {
#if OCTAVO_WGMMA
  constexpr int kN = kTileColumns;
  if constexpr (std::is_same_v<T, Bf16>) {
    OCTAVO_PRODUCT_OF_ROWS("bf16");
  } else {
    OCTAVO_PRODUCT_OF_ROWS("f16");
  }
#endif
}

#else

template <int kBytes = 16>
void copy_async(void* shared, const void* global, bool valid) {
  emulated::begin_later(emulated::Later::copies, [=] {
    valid ? std::memcpy(shared, global, kBytes) : std::memset(shared, 0, kBytes);
  });
}
inline void commit_copies() { emulated::commit_later(emulated::Later::copies); }
template <int kGroups>
void wait_copies() {
  emulated::wait_later(emulated::Later::copies, kGroups);
}
inline void show_to_products() {}
template <int>
void give_registers() {}
template <int>
void take_registers() {}
inline void named_barrier(int id, int threads) { emulated::named_barrier(id, threads); }
inline void named_arrival(int id, int threads) { emulated::named_arrival(id, threads); }

// Returns the same descriptor as on the GPU, but the address is relative to the start of shared memory.
inline std::uint64_t operand(const void* tile) {
  const auto offset = static_cast<std::uint64_t>(static_cast<const unsigned char*>(tile) - shared_memory());
  return std::uint64_t{1} << 62 | std::uint64_t{kSwizzleBytes >> 4} << 32 | std::uint64_t{1} << 16 | offset >> 4;
}

namespace emulated {

// Returns element (row, column) of tiles with the 128-byte swizzle. Groups of 8 rows are one stride apart,
// and groups of 128 bytes of columns are one leading-dimension offset apart. Bits 7 to 9 of an address are
// XORed into bits 4 to 6.
template <class T>
float number_of_tile(std::uint64_t operand, int row, int column) {
  constexpr int kBytes = static_cast<int>(sizeof(T)), kColumns = kTileRowBytes / kBytes;
  const auto field = [&](int bit) { return (operand >> bit & 0x3fff) << 4; };
  std::uint64_t address = field(0) + static_cast<std::uint64_t>(row / 8) * field(32) +
                          static_cast<std::uint64_t>(column / kColumns) * field(16) +
                          static_cast<std::uint64_t>(row % 8 * kTileRowBytes + column % kColumns * kBytes);
  address ^= (address >> 7 & 7) << 4;
  T number;
  std::memcpy(&number, emulated::shared_memory() + address, sizeof number);
  return to_float(number);
}

}  // namespace emulated

inline void begin_products() {}
inline void commit_products() { emulated::commit_later(emulated::Later::products); }
template <int kGroups, int kCount>
void wait_products(float (&)[kCount]) {
  emulated::wait_later(emulated::Later::products, kGroups);
}
template <class T, int kN>
void multiply_tiles(float (&d)[kN / 2], std::uint64_t a, std::uint64_t b, bool adds) {
  emulated::begin_later(emulated::Later::products, [&d, a, b, adds] {
    const int g = lane() / 4, t = lane() % 4, first = warp() % 4 * 16;
    for (int i = 0; i < kN / 2; ++i) {
      const int row = first + g + i / 2 % 2 * 8, column = i / 4 * 8 + 2 * t + i % 2;
      float sum = 0;
      for (int k = 0; k < 32 / static_cast<int>(sizeof(T)); ++k)
        sum += emulated::number_of_tile<T>(a, row, k) * emulated::number_of_tile<T>(b, column, k);
      d[i] = adds ? d[i] + sum : sum;
    }
  });
}
// Multiplies with A in registers. The registers are read only when a thread waits for the product.
// number_of_b(column, k) returns an element of B.
template <class T, int kN, class NumberOfB>
void multiply_registers(float (&d)[kN / 2], const std::uint32_t (&a)[4], bool adds, NumberOfB number_of_b) {
  emulated::begin_later(emulated::Later::products, [&d, &a, adds, number_of_b] {
    struct Fragment {
      std::uint32_t a[4];
    } mine;
    std::memcpy(mine.a, a, sizeof mine.a);
    const std::byte* slots = emulated::warp_exchange(&mine, sizeof mine);
    const int g = lane() / 4, t = lane() % 4;
    Fragment row[4];  // rows g and g + 8
    for (int owner = 0; owner < 4; ++owner) row[owner] = emulated::of_lane<Fragment>(slots, g * 4 + owner);
    for (int i = 0; i < kN / 2; ++i) {
      const int column = i / 4 * 8 + 2 * t + i % 2;
      float sum = 0;
      for (int k = 0; k < 16; ++k)
        sum += half_of<T>(row[k % 8 / 2].a[k / 8 * 2 + i / 2 % 2], k % 2) * number_of_b(column, k);
      d[i] = adds ? d[i] + sum : sum;
    }
  });
}
template <class T, int kN>
void multiply_tiles(float (&d)[kN / 2], const std::uint32_t (&a)[4], std::uint64_t b, bool adds) {
  multiply_registers<T, kN>(d, a, adds,
                            [b](int column, int k) { return emulated::number_of_tile<T>(b, column, k); });
}
template <class T>
void multiply_rows(float (&d)[kTileColumns / 2], const std::uint32_t (&a)[4], std::uint64_t b, bool adds) {
  multiply_registers<T, kTileColumns>(d, a, adds,
                                      [b](int column, int k) { return emulated::number_of_tile<T>(b, k, column); });
}
template <int kCount>
void keep_until_here(const std::uint32_t (&)[kCount]) {}

#endif

// Returns the start of the thread block's dynamic shared memory, aligned for tiles.
__device__ inline unsigned char* memory_of_tiles() {
  unsigned char* memory = shared_memory();
#ifdef __CUDACC__
  memory += (kSwizzleBytes - shared_address(memory) % kSwizzleBytes) % kSwizzleBytes;
#endif
  return memory;
}

}  // namespace octavo::cuda
