#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/testing/length.h"
#include "kernels/sampling_math.h"
#include "kernels/testing/backends.h"

namespace octavo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int32_t kUntouched = -77;

struct Lists {
  std::vector<std::int32_t> starts{0}, ids;
  RowLists on(OnDevice& device) {
    return {device(View::of(std::span(starts))), device(View::of(std::span(ids)))};
  }
};

// Owns the memory to which the views of SampleArgs refer. Rows have default parameters until a test changes
// them.
struct Case {
  Case(int row_count, int vocab_size, int top_columns = 0)
      : rows(row_count), vocab(vocab_size), columns(top_columns) {
    const auto n = static_cast<std::size_t>(rows);
    logits.assign(n * static_cast<std::size_t>(vocab), 0);
    rules.resize(n);
    mask.assign(n * static_cast<std::size_t>((vocab + 31) / 32), -1);
    for (Lists* lists : {&history, &bias, &reported}) lists->starts.assign(n + 1, 0);
  }

  // Sets the bias list of a row. Rows must be set in ascending order.
  void set_bias(int row, const std::vector<std::pair<std::int32_t, float>>& entries) {
    for (const auto& [id, value] : entries) bias.ids.push_back(id), bias_values.push_back(value);
    end_list(bias, row);
  }
  void set_history(int row, const std::vector<std::pair<std::int32_t, int>>& entries) {
    for (const auto& [id, count] : entries) history.ids.push_back(id), history_counts.push_back(count);
    end_list(history, row);
  }
  void set_reported(int row, const std::vector<std::int32_t>& ids) {
    reported.ids.insert(reported.ids.end(), ids.begin(), ids.end());
    end_list(reported, row);
  }
  float& logit(int row, int id) {
    return logits[static_cast<std::size_t>(row) * static_cast<std::size_t>(vocab) +
                  static_cast<std::size_t>(id)];
  }

  struct Result {
    std::vector<std::int32_t> ids, ranks, top_ids;
    std::vector<float> logprobs, top_logprobs;
    bool operator==(const Result&) const = default;
  };
  Result run(Backend& backend) {
    const auto n = static_cast<std::size_t>(rows);
    std::vector<float> scratch = logits;
    Result out;
    out.ids.assign(n, kUntouched);
    out.ranks.assign(n, kUntouched);
    out.logprobs.assign(n, kUntouched);
    out.top_ids.assign(n * static_cast<std::size_t>(columns), kUntouched);
    out.top_logprobs.assign(n * static_cast<std::size_t>(columns), kUntouched);
    OnDevice on(backend);
    SampleArgs args{.logits = on(View::of(scratch.data(), DType::f32, {rows, vocab})),
                    .rules = on(View::of(rules.data(), DType::u8, {rows, sizeof(DrawRule)})),
                    .history = history.on(on),
                    .history_counts = on(View::of(std::span(history_counts))),
                    .bias = bias.on(on),
                    .bias_values = on(View::of(std::span(bias_values))),
                    .mask = on(View::of(mask.data(), DType::i32, {rows, (vocab + 31) / 32})),
                    .reported = reported.on(on),
                    .processed = processed,
                    .out_id = on(View::of(std::span(out.ids))),
                    .out_logprob = on(View::of(std::span(out.logprobs))),
                    .out_rank = on(View::of(std::span(out.ranks))),
                    .out_top_ids = on(View::of(out.top_ids.data(), DType::i32, {rows, columns})),
                    .out_top_logprobs = on(View::of(out.top_logprobs.data(), DType::f32, {rows, columns}))};
    EXPECT_TRUE(backend.ops.reserve_sampling(*backend.device, rows, vocab));
    backend.ops.sample(*backend.stream, args);
    on.fetch();
    return out;
  }

  int rows, vocab, columns;
  std::vector<DrawRule> rules;
  std::vector<float> logits, bias_values;
  std::vector<std::int32_t> mask, history_counts;
  Lists history, bias, reported;
  bool processed = false;

 private:
  void end_list(Lists& lists, int row) {
    for (std::size_t r = static_cast<std::size_t>(row) + 1; r < lists.starts.size(); ++r)
      lists.starts[r] = static_cast<std::int32_t>(lists.ids.size());
  }
};

Case random_case(std::mt19937_64& rng, int rows, int vocab) {
  const auto chance = [&](double p) { return std::bernoulli_distribution(p)(rng); };
  const auto integer = [&](int low, int high) { return std::uniform_int_distribution(low, high)(rng); };
  const auto real = [&](double low, double high) {
    return static_cast<float>(std::uniform_real_distribution(low, high)(rng));
  };
  const auto some_ids = [&](int most) {
    std::set<std::int32_t> ids;
    for (int i = integer(0, std::min(most, vocab)); i > 0; --i) ids.insert(integer(0, vocab - 1));
    return ids;
  };
  Case c(rows, vocab, chance(0.1) ? std::min(vocab, 300) : std::min(vocab, 20));
  c.processed = chance(0.3);
  for (int r = 0; r < rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    const float spread = chance(0.2) ? 0.01f : real(0.1, 12);
    const bool coarse = chance(0.3);
    std::normal_distribution<float> normal(real(-20, 20), spread);
    for (int id = 0; id < vocab; ++id) {
      const float x = normal(rng);
      c.logit(r, id) = coarse ? std::round(x) : x;
    }
    if (chance(0.1)) c.logit(r, integer(0, vocab - 1)) = -kInf;
    if (chance(0.03)) c.logit(r, integer(0, vocab - 1)) = std::nanf("");
    if (chance(0.02)) c.logit(r, integer(0, vocab - 1)) = kInf;
    c.rules[i].temperature = chance(0.2) ? 0 : chance(0.3) ? 1 : real(0.01, 2);
    if (chance(0.4))
      c.rules[i].top_k = chance(0.2) ? integer(1, vocab + 5) : integer(1, std::min(vocab, 100));
    if (chance(0.4)) c.rules[i].top_p = chance(0.1) ? 1e-6f : real(0.05, 1);
    if (chance(0.3)) c.rules[i].min_p = chance(0.1) ? 1 : real(0, 0.5);
    c.rules[i].random = static_cast<std::int64_t>(rng());
    if (chance(0.1)) c.rules[i].forced = integer(0, vocab - 1);
    if (chance(0.4)) {
      std::vector<std::pair<std::int32_t, int>> entries;
      for (const auto id : some_ids(1000)) entries.emplace_back(id, integer(0, 3));
      c.set_history(r, entries);
      c.rules[i].repetition_penalty = chance(0.3) ? 1 : real(0.5, 2);
      c.rules[i].frequency_penalty = real(-2, 2);
      c.rules[i].presence_penalty = real(-2, 2);
    }
    if (chance(0.4)) {
      std::vector<std::pair<std::int32_t, float>> entries;
      for (const auto id : some_ids(300)) entries.emplace_back(id, chance(0.3) ? -kInf : real(-100, 100));
      c.set_bias(r, entries);
    }
    if (chance(0.3)) {
      c.rules[i].mask_row = r;
      const auto words = static_cast<std::size_t>((vocab + 31) / 32);
      const bool nothing = chance(0.05), sparse = chance(0.5);
      for (std::size_t w = 0; w < words; ++w)
        c.mask[i * words + w] =
            nothing ? 0 : static_cast<std::int32_t>(sparse ? rng() & rng() & rng() & rng() : rng());
    }
    if (chance(0.6)) c.rules[i].top_count = chance(0.2) ? 0 : integer(0, c.columns);
    if (c.rules[i].top_count >= 0 && chance(0.2)) {
      const auto ids = some_ids(c.columns);
      c.set_reported(r, {ids.begin(), ids.end()});
    }
  }
  return c;
}

// `error` is the allowed relative difference of logprobs, because a GPU computes logarithms differently.
void expect_same(const Case::Result& a, const Case::Result& b, const std::string& what, float error = 0) {
  EXPECT_EQ(a.ids, b.ids) << what;
  EXPECT_EQ(a.ranks, b.ranks) << what;
  EXPECT_EQ(a.top_ids, b.top_ids) << what;
  for (const auto& [x, y] :
       {std::pair(&a.logprobs, &b.logprobs), std::pair(&a.top_logprobs, &b.top_logprobs)})
    for (std::size_t i = 0; i < x->size(); ++i)
      EXPECT_NEAR((*x)[i], (*y)[i], error * std::abs((*x)[i])) << what << " item " << i;
}

Backend cpu(int threads) { return make_cpu_backend({.threads = threads, .isa = {}}).value(); }

TEST(Sample, CpuEqualsReferenceWithAnyNumberOfThreads) {
  std::mt19937_64 rng(1);
  Backend reference = make_reference_backend(), one = cpu(1), three = cpu(3), four = cpu(4);
  const std::vector<int> sizes = {1, 2, 31, 32, 33, 127, 128, 129, 1000, 5000, 8192, 8193, 50257};
  for (int round = 0; round < rounds(400, 4); ++round) {
    const int vocab = sizes[rng() % sizes.size()];
    const int rows = static_cast<int>(vocab > 10000 ? rng() % 3 : rng() % 9) + 1;
    Case c = random_case(rng, rows, vocab);
    const auto expected = c.run(reference);
    const std::string what = fmt::format("round {} rows {} vocab {}", round, rows, vocab);
    expect_same(expected, c.run(one), what + " 1 thread");
    expect_same(expected, c.run(three), what + " 3 threads");
    expect_same(expected, c.run(four), what + " 4 threads");
    if (HasFailure()) return;
  }
}

TEST(Sample, CpuEqualsReferenceOnHugeVocabularies) {
  std::mt19937_64 rng(2);
  Backend reference = make_reference_backend(), one = cpu(1), four = cpu(4);
  for (int round = 0; round < rounds(12, 3); ++round) {
    Case c = random_case(rng, round % 5 + 1, 128000 + static_cast<int>(rng() % 72000));
    const auto expected = c.run(reference);
    expect_same(expected, c.run(one), fmt::format("round {}, 1 thread", round));
    expect_same(expected, c.run(four), fmt::format("round {}, 4 threads", round));
    if (HasFailure()) return;
  }
}

TEST(Sample, CudaEqualsReference) {
  auto cuda = make_cuda_backend();
  if (!cuda) GTEST_SKIP() << cuda.error().message;
  Backend reference = make_reference_backend();
  std::mt19937_64 rng(3);
  const std::vector<int> sizes = {1, 2, 31, 32, 33, 511, 512, 513, 1000, 5000, 8193, 50257, 131072};
  for (int round = 0; round < rounds(150, 10); ++round) {
    const int vocab = sizes[rng() % sizes.size()];
    Case c = random_case(rng, static_cast<int>(vocab > 10000 ? rng() % 2 : rng() % 9) + 1, vocab);
    expect_same(c.run(reference), c.run(*cuda),
                fmt::format("round {} rows {} vocab {}", round, c.rows, vocab), 1e-6f);
    if (HasFailure()) return;
  }
}

TEST(Sample, MassIsTheExponential) {
  for (double d = 0; d > -40; d -= 0.00137) {
    const auto f = static_cast<float>(d);
    const double exact = std::ldexp(std::exp(static_cast<double>(f)), 40);
    ASSERT_NEAR(static_cast<double>(sampling::mass(f)), exact, exact * 2e-7 + 1.01) << d;
  }
  EXPECT_EQ(sampling::mass(0), std::uint64_t{1} << 40);
  EXPECT_EQ(sampling::mass(-kInf), 0u);
}

std::vector<TestBackend> sample_backends() {
  return {{"reference", [](int) -> Result<Backend> { return make_reference_backend(); }},
          {"cpu", [](int threads) { return make_cpu_backend({.threads = threads, .isa = {}}); }},
          {"cuda", [](int) { return make_cuda_backend(); }}};
}

class SampleEach : public testing::TestWithParam<TestBackend> {
 protected:
  void SetUp() override {
    auto made = GetParam().make(2);
    if (!made) GTEST_SKIP() << made.error().message;
    backend_.emplace(*std::move(made));
  }
  Case::Result run(Case& c) { return c.run(*backend_); }
  std::optional<Backend> backend_;
};
INSTANTIATE_TEST_SUITE_P(Backends, SampleEach, testing::ValuesIn(sample_backends()), test_backend_name);

TEST_P(SampleEach, GreedyTakesTheLowestOfEquals) {
  Case c(2, 300);
  c.rules[0].temperature = c.rules[1].temperature = 0;
  c.logit(0, 200) = c.logit(0, 130) = 3;
  c.rules[1].top_k = 1;
  EXPECT_EQ(run(c).ids, (std::vector<std::int32_t>{130, 0}));
}

TEST_P(SampleEach, TopKKeepsExactlyKLowerIdsFirst) {
  Case c(1, 1000);  // all logits are equal, so the first three tokens are 0, 1, 2
  c.rules[0].top_k = 3;
  std::set<std::int32_t> seen;
  for (std::uint64_t i = 0; i < 64; ++i) {
    c.rules[0].random = static_cast<std::int64_t>(i << 58);
    seen.insert(run(c).ids[0]);
  }
  EXPECT_EQ(seen, (std::set<std::int32_t>{0, 1, 2}));
}

TEST_P(SampleEach, TopPKeepsTheFewestThatReachIt) {
  Case c(1, 4);
  for (int id = 0; id < 4; ++id)
    c.logit(0, id) = std::log(std::vector{0.1f, 0.4f, 0.2f, 0.3f}[static_cast<std::size_t>(id)]);
  const auto kept = [&](float top_p) {
    std::set<std::int32_t> seen;
    c.rules[0].top_p = top_p;
    for (std::uint64_t i = 0; i < 64; ++i) {
      c.rules[0].random = static_cast<std::int64_t>(i << 58);
      seen.insert(run(c).ids[0]);
    }
    return seen;
  };
  EXPECT_EQ(kept(0.01f), (std::set<std::int32_t>{1}));
  EXPECT_EQ(kept(0.39f), (std::set<std::int32_t>{1}));
  EXPECT_EQ(kept(0.41f), (std::set<std::int32_t>{1, 3}));
  EXPECT_EQ(kept(0.71f), (std::set<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(kept(0.95f), (std::set<std::int32_t>{0, 1, 2, 3}));
}

TEST_P(SampleEach, EndsOfTheDraw) {
  Case c(2, 10);
  c.rules[1].random = -1;  // -1 has all 64 bits set
  EXPECT_EQ(run(c).ids, (std::vector<std::int32_t>{0, 9}));
}

TEST_P(SampleEach, BrokenRowsAreSaidSoAndDisturbNoOther) {
  Case c(4, 100, 3);
  const std::vector reported{3, 2, 0, 1};
  for (std::size_t r = 0; r < reported.size(); ++r) c.rules[r].top_count = reported[r];
  c.logit(0, 7) = std::nanf("");
  c.logit(1, 7) = kInf;
  std::vector<std::pair<std::int32_t, float>> ban_all;
  for (int id = 0; id < 100; ++id) ban_all.emplace_back(id, -kInf);
  c.set_bias(2, ban_all);
  c.rules[3].temperature = 0;
  c.logit(3, 5) = 1;
  const auto out = run(c);
  EXPECT_EQ(out.ids, (std::vector<std::int32_t>{-1, -1, -1, 5}));
  EXPECT_EQ(out.ranks, (std::vector<std::int32_t>{0, 0, 0, 1}));
  EXPECT_EQ(out.top_ids, (std::vector<std::int32_t>{-1, -1, -1, -1, -1, kUntouched, kUntouched, kUntouched,
                                                    kUntouched, 5, kUntouched, kUntouched}));
  EXPECT_EQ(out.logprobs[0], kLogprobFloor);
}

TEST_P(SampleEach, RawLogprobsKnowNothingOfProcessing) {
  Case c(1, 3, 3);
  c.logits = {1, 3, 2};
  c.rules[0].temperature = 0;
  c.rules[0].top_count = 3;
  c.set_bias(0, {{1, -kInf}});
  const auto out = run(c);
  const double z = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
  EXPECT_EQ(out.ids[0], 2);
  EXPECT_EQ(out.ranks[0], 2);
  EXPECT_NEAR(out.logprobs[0], 2 - z, 1e-6);
  EXPECT_EQ(out.top_ids, (std::vector<std::int32_t>{1, 2, 0}));
  EXPECT_NEAR(out.top_logprobs[2], 1 - z, 1e-6);
}

TEST_P(SampleEach, ProcessedLogprobsOfTheUnkeptAreTheFloor) {
  Case c(1, 4, 4);
  c.logits = {1, 3, 2, 0};
  c.processed = true;
  c.rules[0].temperature = 0.5f;
  c.rules[0].top_k = 2;
  c.rules[0].top_count = 4;
  c.set_bias(0, {{3, -kInf}});
  const auto out = run(c);
  EXPECT_EQ(out.top_ids, (std::vector<std::int32_t>{1, 2, 0, 3}));
  EXPECT_NEAR(out.top_logprobs[0], 6 - std::log(std::exp(6.0) + std::exp(4.0)), 1e-6);
  EXPECT_EQ(out.top_logprobs[2], kLogprobFloor);
  EXPECT_EQ(out.top_logprobs[3], kLogprobFloor);
}

TEST_P(SampleEach, PenaltiesFollowTheirFormulas) {
  Case c(1, 4, 4);
  c.logits = {2, -2, 2, 2};
  c.processed = true;
  c.rules[0].temperature = 0;
  c.rules[0].top_count = 0;
  c.rules[0].repetition_penalty = 2;
  c.rules[0].frequency_penalty = 0.5;
  c.rules[0].presence_penalty = 0.25;
  c.set_history(0, {{0, 2}, {1, 1}, {2, 0}});  // {token, number of times in the output}
  c.set_reported(0, {0, 1, 2, 3});
  const auto out = run(c);
  EXPECT_NEAR(out.top_logprobs[0] - out.top_logprobs[3], -0.25 - 2, 1e-6);
  EXPECT_NEAR(out.top_logprobs[1] - out.top_logprobs[3], -4.75 - 2, 1e-6);
  EXPECT_NEAR(out.top_logprobs[2] - out.top_logprobs[3], 1 - 2, 1e-6);
}

TEST_P(SampleEach, ForcedRowsReportWithoutChoosing) {
  Case c(1, 3, 1);
  c.logits = {1, 3, 2};
  c.rules[0].forced = 0;
  c.rules[0].top_count = 1;
  c.set_bias(0, {{1, -kInf}});
  const auto out = run(c);
  EXPECT_EQ(out.ids[0], 0);
  EXPECT_EQ(out.ranks[0], 3);
  EXPECT_EQ(out.top_ids[0], 1);
}

}  // namespace
}  // namespace octavo
