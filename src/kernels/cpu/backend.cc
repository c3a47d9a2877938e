#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/backends.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/matrix_tiles.h"

namespace octavo {
namespace {

#define OCTAVO_ROW(name, Args, backends) .name = cpu::name,
constexpr Ops kCpuOps{.has = [](Need need) { return need != Need::fp8_activations; },
                      .activation = cpu::activation_of,
                      .prepare = cpu::prepare,
                      .kv_block_bytes = cpu::kv_block_bytes,
                      .supports = cpu::supports,
                      .make_attention_plan = cpu::make_attention_plan,
                      .plan_attention = cpu::plan_attention,
                      .reserve_sampling = cpu::reserve_sampling,
                      OCTAVO_OPERATORS(OCTAVO_ROW)};
#undef OCTAVO_ROW

struct IsaChoice {
  CpuIsa isa;
  const cpu::IsaKernels* kernels;
  // first required instruction set that this processor lacks; "": nothing is missing
  std::string_view missing;
};

#if defined(__x86_64__)
cpu::IsaKernels on_tiles(CpuIsa isa, const cpu::MatrixTiles& tiles) {
  cpu::IsaKernels kernels = cpu::kAvx512Bf16Kernels;
  kernels.name = name(isa).data();
  kernels.matrix = &tiles;
  return kernels;
}

// `avx2` and `avx512_vnni` are the features that the processor lacks for these instruction sets; "": none.
IsaChoice avx_vnni(std::string_view avx2, std::string_view avx512_vnni) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool own = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & bit_AVXVNNI) != 0;
  if (!own && avx512_vnni.empty()) return {CpuIsa::avx_vnni, &cpu::kAvxVnniEvexKernels, ""};
  return {CpuIsa::avx_vnni, &cpu::kAvxVnniKernels, own || !avx2.empty() ? avx2 : "AVX_VNNI"};
}
#endif

// Returns all choices. The last supported choice is the best one.
std::vector<IsaChoice> isa_choices() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  std::string_view avx2, avx512;
  if (!__builtin_cpu_supports("f16c")) avx2 = "F16C";
  if (!__builtin_cpu_supports("fma")) avx2 = "FMA";
  if (!__builtin_cpu_supports("avx2")) avx2 = "AVX2";
  avx512 = avx2;
  if (!__builtin_cpu_supports("avx512dq")) avx512 = "AVX512DQ";
  if (!__builtin_cpu_supports("avx512vl")) avx512 = "AVX512VL";
  if (!__builtin_cpu_supports("avx512bw")) avx512 = "AVX512BW";
  if (!__builtin_cpu_supports("avx512f")) avx512 = "AVX512F";
  std::string_view avx512_vnni = avx512;
  if (avx512.empty() && !__builtin_cpu_supports("avx512vnni")) avx512_vnni = "AVX512_VNNI";
  std::string_view avx512_bf16 = avx512_vnni;
  if (avx512_vnni.empty() && !__builtin_cpu_supports("avx512bf16")) avx512_bf16 = "AVX512_BF16";
  static const cpu::IsaKernels amx = on_tiles(CpuIsa::amx, cpu::kAmxTiles);
  static const cpu::IsaKernels amx_modelled = on_tiles(CpuIsa::amx_modelled, cpu::kModelledTiles);
  return {{CpuIsa::avx2, &cpu::kAvx2Kernels, avx2},
          avx_vnni(avx2, avx512_vnni),
          {CpuIsa::amx_modelled, &amx_modelled, avx512_bf16},  // never selected automatically
          {CpuIsa::avx512, &cpu::kAvx512Kernels, avx512},
          {CpuIsa::avx512_vnni, &cpu::kAvx512VnniKernels, avx512_vnni},
          {CpuIsa::avx512_bf16, &cpu::kAvx512Bf16Kernels, avx512_bf16},
          {CpuIsa::amx, &amx, avx512_bf16.empty() ? cpu::missing_for_amx() : avx512_bf16}};
#elif defined(__aarch64__)
  // Every ARMv8 processor has NEON.
  const std::string_view dot = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? "" : "FEAT_DotProd";
  std::string_view bf16 = dot;
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) == 0) bf16 = "FEAT_I8MM";
  if ((getauxval(AT_HWCAP2) & HWCAP2_BF16) == 0) bf16 = "FEAT_BF16";
  return {{CpuIsa::neon, &cpu::kNeonKernels, ""},
          {CpuIsa::neon_dot, &cpu::kNeonDotKernels, dot},
          {CpuIsa::neon_bf16, &cpu::kNeonBf16Kernels, bf16}};
#else
  return {};
#endif
}

Result<const cpu::IsaKernels*> choose(std::optional<CpuIsa> wanted) {
  const std::vector<IsaChoice> choices = isa_choices();
  const cpu::IsaKernels* best = nullptr;
  for (const IsaChoice& choice : choices) {
    if (wanted && choice.isa != *wanted) continue;
    if (choice.missing.empty()) {
      best = choice.kernels;
    } else if (wanted) {
      return failure(ErrorCode::unsupported, "this processor lacks {}", choice.missing);
    }
  }
  if (best != nullptr) return best;
  if (wanted || choices.empty())
    return failure(ErrorCode::unsupported, "this build has no kernels for this type of processor");
  return failure(ErrorCode::unsupported, "the CPU backend needs AVX2, FMA and F16C; this processor lacks {}",
                 choices.front().missing);
}

}  // namespace

std::string_view name(CpuIsa isa) {
  constexpr std::string_view kNames[] = {"avx2",        "avx_vnni", "amx_modelled", "avx512",   "avx512_vnni",
                                         "avx512_bf16", "amx",      "neon",         "neon_dot", "neon_bf16"};
  return kNames[static_cast<int>(isa)];
}

Result<Backend> make_cpu_backend(const CpuOptions& options) {
  TRY(const cpu::IsaKernels* kernels, choose(options.isa));
  if (options.threads < 0) return invalid("threads", "{} is negative", options.threads);
  const int threads = options.threads == 0 ? usable_processors() : options.threads;
  auto stream = std::make_unique<cpu::CpuStream>(threads, kernels);
  auto device =
      std::make_unique<cpu::CpuDevice>(fmt::format("cpu ({}, {} threads)", kernels->name, threads), *stream);
  return Backend{.name = "cpu", .ops = kCpuOps, .device = std::move(device), .stream = std::move(stream)};
}

}  // namespace octavo
