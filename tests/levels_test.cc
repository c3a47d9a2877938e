// Which instruction sets give the same answers bit for bit: the table in docs/guides/replay.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "determinism.h"

namespace octavo {
namespace {

constexpr int kRequests = 12;

struct Format {
  ModelDType dtype;
  Encoding quantization;
};

RigOptions options_of(const Format& format, CpuIsa isa) {
  return {.isa = isa, .dtype = format.dtype, .quantization = format.quantization};
}

// Instruction sets with the same number give the same bits. Those of ARM and amx have separate numbers.
int group_of(const Format& format, CpuIsa isa) {
  const bool all_codes = format.quantization == Encoding::int4;
  switch (isa) {
    case CpuIsa::avx2:
    case CpuIsa::avx_vnni:
      return 0;
    case CpuIsa::avx512:
    case CpuIsa::avx512_vnni:
      return all_codes ? 0 : 1;
    case CpuIsa::avx512_bf16:
      return format.dtype == ModelDType::float32 ? 1 : 2;
    default:
      return 3 + static_cast<int>(isa);
  }
}

class Levels : public testing::TestWithParam<Format> {};

TEST_P(Levels, InstructionSetsOfOneGroupGiveTheSameBits) {
  std::vector<Request> requests;
  std::map<int, std::pair<CpuIsa, std::vector<Answers>>> groups;
  for (const CpuIsa isa : kCpuIsas) {
    if (!make_cpu_backend({.threads = 1, .isa = isa}) || isa == CpuIsa::amx_modelled) continue;
    Rig rig(options_of(GetParam(), isa));
    if (requests.empty()) requests = random_requests(rig, kRequests, 1);
    const std::vector<Answers> answers = rig.run(requests);
    const auto known = groups.try_emplace(group_of(GetParam(), isa), isa, answers).first;
    EXPECT_TRUE(answers == known->second.second) << name(isa) << " and " << name(known->second.first);
  }
  EXPECT_FALSE(groups.empty());
}

INSTANTIATE_TEST_SUITE_P(Formats, Levels,
                         testing::Values(Format{ModelDType::float32, Encoding::plain},
                                         Format{ModelDType::bfloat16, Encoding::plain},
                                         Format{ModelDType::bfloat16, Encoding::int8},
                                         Format{ModelDType::bfloat16, Encoding::int4}),
                         [](const auto& test) {
                           return fmt::format(
                               "{}_{}", test.param.dtype == ModelDType::float32 ? "float32" : "bfloat16",
                               test.param.quantization == Encoding::plain ? "plain"
                                                                          : name(test.param.quantization));
                         });

}  // namespace
}  // namespace octavo
