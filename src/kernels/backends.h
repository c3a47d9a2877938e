#pragma once

#include <optional>
#include <string_view>

#include "kernels/ops.h"

namespace octavo {

// Instruction sets of the CPU backend: x86 first, then ARM. By default the backend uses the last one in this
// list that the processor supports, but never amx_modelled. amx is avx512_bf16 plus AMX tiles; amx_modelled
// emulates the tiles in software, for tests.
enum class CpuIsa : std::uint8_t {
  avx2,
  avx_vnni,
  amx_modelled,
  avx512,
  avx512_vnni,
  avx512_bf16,
  amx,
  neon,
  neon_dot,
  neon_bf16
};
inline constexpr CpuIsa kCpuIsas[] = {
    CpuIsa::avx2,        CpuIsa::avx_vnni, CpuIsa::amx_modelled, CpuIsa::avx512,   CpuIsa::avx512_vnni,
    CpuIsa::avx512_bf16, CpuIsa::amx,      CpuIsa::neon,         CpuIsa::neon_dot, CpuIsa::neon_bf16};
std::string_view name(CpuIsa isa);

struct CpuOptions {
  int threads = 0;
  std::optional<CpuIsa> isa;  // instruction set to use; nullopt: the best one that this processor supports
};

// The reference backend runs every operator as plain loops in double precision, on one thread. Tests
// compare other backends with it.
Backend make_reference_backend();

// Returns an error if the processor does not support the minimum or the requested instruction set.
Result<Backend> make_cpu_backend(const CpuOptions& options);

// Creates a backend on NVIDIA GPU `number`, modulo the number of GPUs that this process may use
// (CUDA_VISIBLE_DEVICES). All backends of a process must be on one GPU. Returns an error if this build has no
// CUDA backend, if the driver or the device is missing, or if the device is too old.
Result<Backend> make_cuda_backend(int number = 0);

}  // namespace octavo
