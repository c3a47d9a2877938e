// Which instruction sets give the same answers bit for bit: the table in docs/guides/replay.md.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>

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

class Levels : public testing::TestWithParam<Format> {};

TEST_P(Levels, InstructionSetsOfOneGroupGiveTheSameBits) {
  std::vector<CpuIsa> supported;
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) supported.push_back(isa);
  ASSERT_FALSE(supported.empty());
  Rig first(options_of(GetParam(), supported.front()));
  const std::vector<Request> requests = random_requests(first, kRequests, 1);
  std::vector<std::pair<std::vector<Answers>, std::vector<std::string>>> groups;
  for (const CpuIsa isa : supported) {
    const std::vector<Answers> answers = Rig(options_of(GetParam(), isa)).run(requests);
    const auto known = std::ranges::find(groups, answers, [](const auto& group) { return group.first; });
    if (known != groups.end())
      known->second.emplace_back(name(isa));
    else
      groups.push_back({answers, {std::string(name(isa))}});
  }
  for (const auto& [answers, isas] : groups) fmt::print("{}\n", fmt::join(isas, ", "));
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
