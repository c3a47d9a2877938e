// A warm step allocates nothing, unless log-probabilities are asked for, which leave with the result.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "sample/sampler.h"
#include "sample/test_backend.h"

namespace {
std::atomic<long> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment))
    return memory;
  std::abort();
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace octavo {
namespace {

TEST(SamplerAllocation, NoneInAWarmStep) {
  constexpr int kVocab = 2000;
  std::vector<SamplingParams> params(16);
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (i % 2 == 0) params[i].top_p = 0.9;
    if (i % 3 == 0) params[i].top_k = 40;
    if (i % 4 == 0) params[i].frequency_penalty = 1;
    if (i % 5 == 0) params[i].bad_word_ids = {{7}, {8, 9}};
    if (i % 7 == 0) params[i].allowed_token_ids = {1, 2, 3};
  }
  const std::vector<TokenId> output{4, 5, 6};
  std::vector<SequenceSampling> sequences;
  std::vector<SampleRow> rows;
  for (const SamplingParams& p : params)
    sequences.emplace_back(p, output, std::vector<TokenId>{0}, 1, kVocab);
  for (SequenceSampling& s : sequences) {
    for (const TokenId id : output) s.append(id);
    rows.push_back({&s, output});
  }
  std::vector<float> logits(params.size() * kVocab);
  const View view = View::of(logits.data(), DType::f32, {static_cast<std::int64_t>(params.size()), kVocab});
  Backend backend = test_backend(2);
  Sampler sampler(backend, {});
  const auto step = [&] {
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 97) / 10;
    EXPECT_TRUE(sampler.launch(view, rows));
    EXPECT_EQ(sampler.collect().size(), rows.size());
  };
  step();
  const long before = allocations.load();
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace octavo
