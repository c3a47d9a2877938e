// The backends that this build has.
#pragma once

#include <optional>
#include <string_view>

#include "kernels/ops.h"

namespace octavo {

// Instruction sets of the CPU backend; those of one processor family from least to most able. amx is
// avx512_bf16 with products on matrix tiles; amx_modelled the same in software, for tests where there are no
// tiles.
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
  int threads = 0;            // 0: as many as this process may use
  std::optional<CpuIsa> isa;  // nullopt: the best that this processor has; for tests, a lesser one
};

// Plain loops in double precision: the specification of every operator. One thread.
Backend make_reference_backend();

// Errors: this processor lacks the instructions that the backend needs, or those asked for.
Result<Backend> make_cpu_backend(const CpuOptions& options);

// The first NVIDIA GPU. Errors, each in one line: this build has no CUDA backend; there is no driver, no
// device, or one that is too old.
Result<Backend> make_cuda_backend();

}  // namespace octavo
