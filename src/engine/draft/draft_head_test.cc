// Tests a draft head with the tiny checkpoints in tests/data/drafters. The draft tokens must match torch's
// logits, for all ways to divide a text into steps, and after rejected draft tokens.
#include "engine/draft/draft_head.h"

#include <gtest/gtest.h>

#include <array>

#include "kernels/backends.h"
#include "model/drafter.h"
#include "model/testing/golden.h"

namespace octavo {
namespace {

constexpr int kHeadBlock = 16;
constexpr int kBlocks = 16;
constexpr int kMost = 4;

struct HeadCase {
  const char* name;
  const char* target;
  Result<Drafter> (*load)(const std::string&, const Model&, Backend&, const LoadOptions&);
};

std::string in_data(const char* name) { return std::string(golden::kDrafters) + "/" + name; }

// A model with its head, and several sequences of the same text. Sequence s has the blocks s, s + 2, s + 4,
// ..
class HeadBench {
 public:
  explicit HeadBench(const HeadCase& c)
      : backend_(std::make_shared<Backend>(make_cpu_backend({.threads = 1, .isa = {}}).value())) {
    auto model = Model::load(in_data(c.target), *backend_, {.dtype = ModelDType::float32}).value();
    Drafter drafter = c.load(in_data(c.name), *model, *backend_, {}).value();
    const std::vector<int> layers = drafter.model->spec.inputs.hidden->layers;
    model_ = executor(std::move(model), kBlocks, layers);
    const DraftHeadLimits limits{
        .block_size = kHeadBlock, .num_blocks = kBlocks, .own_blocks = 2, .drawn = false};
    head_ = std::make_unique<DraftHead>(*model_, executor(std::move(drafter.model), kBlocks + 4, {}),
                                        drafter.tokens, limits);
  }

  // Runs a step with `sequences` sequences. The tokens are [first, end) of the text, followed by `wrong`
  // wrong draft tokens.
  void step(std::span<const TokenId> text, int first, int end, int wrong, int sequences = 1,
            bool wanted = true) {
    const auto count = static_cast<std::size_t>(end - first + wrong);
    Batch batch;
    batch.query_starts = {0};
    batch.groups.resize(1);
    batch.groups[0].table_stride = kBlocks / 2;
    for (int s = 0; s < sequences; ++s) {
      for (int p = first; p < end + wrong; ++p) {
        batch.ids.push_back(p < end ? text[static_cast<std::size_t>(p)] : 5);
        batch.positions.push_back(p);
        batch.groups[0].slots.push_back((p / kHeadBlock * 2 + s) * kHeadBlock + p % kHeadBlock);
      }
      for (int b = 0; b < kBlocks / 2; ++b)
        batch.groups[0].tables.push_back(b * kHeadBlock >= end + wrong ? -1 : 2 * b + s);
      batch.query_starts.push_back(batch.tokens());
      batch.lengths.push_back(end + wrong);
      batch.sequences.push_back(SequenceId{static_cast<std::uint64_t>(s)});
    }
    ASSERT_TRUE(model_->forward(batch));
    std::vector<ComputedText> texts;
    for (int s = 0; s < sequences; ++s) {
      const std::size_t at = static_cast<std::size_t>(s) * count;
      texts.push_back(
          {.sequence = static_cast<std::uint64_t>(s),
           .row = static_cast<std::int32_t>(at),
           .first = first,
           .tokens = std::span(batch.ids).subspan(at, static_cast<std::size_t>(end - first)),
           .next = text[static_cast<std::size_t>(end)],
           .slots = std::span(batch.groups[0].slots).subspan(at, static_cast<std::size_t>(end - first)),
           .blocks = std::span(batch.groups[0].tables)
                         .subspan(static_cast<std::size_t>(s * kBlocks / 2), kBlocks / 2),
           .wanted = wanted});
    }
    ASSERT_TRUE(head_->read(texts));
    // Reads the step while its spans are valid, like the engine. Appends the draft tokens to the text.
    std::array<Draft, 2> drafts;
    for (int s = 0; s < sequences; ++s)
      drafts[static_cast<std::size_t>(s)] = {.sequence = static_cast<std::uint64_t>(s),
                                             .text = text.first(static_cast<std::size_t>(end) + 1),
                                             .sampling = &sampling_,
                                             .most = kMost};
    ASSERT_TRUE(head_->propose(std::span(drafts).first(static_cast<std::size_t>(sequences))));
    for (int s = 1; s < sequences; ++s)
      EXPECT_EQ(drafts[static_cast<std::size_t>(s)].tokens, drafts[0].tokens);
    draft_tokens = drafts[0].tokens;
  }

  std::vector<TokenId> draft_tokens;

 private:
  std::unique_ptr<LocalExecutor> executor(std::unique_ptr<Model> model, int blocks,
                                          const std::vector<int>& kept) {
    const CacheLayout layout =
        cache_layout(model->spec, {.block_size = kHeadBlock, .dtype = model->activation});
    auto made = LocalExecutor::create(backend_, std::move(model), layout,
                                      {.max_tokens = 96, .max_sequences = 2, .kept_layers = kept})
                    .value();
    EXPECT_TRUE(made->allocate_cache(blocks, 2));
    return made;
  }

  std::shared_ptr<Backend> backend_;
  std::unique_ptr<LocalExecutor> model_;
  std::unique_ptr<DraftHead> head_;
  SamplingParams sampling_;
};

TokenId likeliest(std::span<const float> logits, const std::vector<std::int32_t>& tokens) {
  const auto row = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
  return tokens.empty() ? static_cast<TokenId>(row) : tokens[row];
}

TEST(DraftHead, DraftsWhatTorchSays) {
  const HeadCase cases[] = {{"deepseek_v3", "deepseek_v3", load_predictor},
                            {"glm4_moe", "glm4_moe", load_predictor},
                            {"mimo", "mimo", load_predictor},
                            {"eagle", "llama", load_eagle},
                            {"eagle3", "llama", load_eagle3},
                            {"eagle3-speculators", "llama", load_eagle3}};
  for (const HeadCase& c : cases) {
    SCOPED_TRACE(c.name);
    const golden::Golden golden = golden::read(c.name, golden::kDrafters);
    const std::vector<TokenId> text(golden.ids.begin(), golden.ids.end());
    const int last = static_cast<int>(text.size()) - 1;
    HeadBench whole(c);
    whole.step(text, 0, last, 0);
    ASSERT_EQ(whole.draft_tokens.size(), static_cast<std::size_t>(kMost));
    Backend backend = make_reference_backend();
    const auto model = Model::load(in_data(c.target), backend, {}).value();
    const std::vector<std::int32_t> tokens = c.load(in_data(c.name), *model, backend, {}).value().tokens;
    EXPECT_EQ(whole.draft_tokens[0],
              likeliest(std::span(golden.logits).last(golden.next_logits.size()), tokens));
    EXPECT_EQ(whole.draft_tokens[1], likeliest(golden.next_logits, tokens));

    HeadBench pieces(c);
    pieces.step(text, 0, 7, 0);
    pieces.step(text, 7, 8, 3);
    pieces.step(text, 8, 15, 0);
    pieces.step(text, 15, 17, 2);
    pieces.step(text, 17, last, 1);
    EXPECT_EQ(pieces.draft_tokens, whole.draft_tokens);

    HeadBench two(c);
    two.step(text, 0, 11, 0, 2);
    two.step(text, 11, last, 2, 2);
    EXPECT_EQ(two.draft_tokens, whole.draft_tokens);
  }
}

// The head has not read the beginning of the text. It starts at the beginning of a block and does not
// attend to earlier blocks.
TEST(DraftHead, GoesOnBehindAGap) {
  const HeadCase cases[] = {{"deepseek_v3", "deepseek_v3", load_predictor}, {"eagle3", "llama", load_eagle3}};
  for (const HeadCase& c : cases) {
    SCOPED_TRACE(c.name);
    const golden::Golden golden = golden::read(c.name, golden::kDrafters);
    const std::vector<TokenId> text(golden.ids.begin(), golden.ids.end());
    const int last = static_cast<int>(text.size()) - 1;
    ASSERT_GT(last, kHeadBlock + 2);
    HeadBench whole(c);
    whole.step(text, 0, last, 0);

    HeadBench late(c);
    late.step(text, 0, 5, 0, 1, false);
    EXPECT_TRUE(late.draft_tokens.empty());
    late.step(text, 5, 7, 0);
    EXPECT_TRUE(late.draft_tokens.empty()) << "its block has a gap";
    late.step(text, 7, last, 0);
    EXPECT_EQ(late.draft_tokens.size(), static_cast<std::size_t>(kMost));

    // Does the same with blocks that contain another text.
    const std::vector<TokenId> other(text.size(), 7);
    HeadBench used(c);
    used.step(other, 0, last, 0);
    used.step(text, 0, kHeadBlock, 0, 1, false);
    EXPECT_TRUE(used.draft_tokens.empty());
    used.step(text, kHeadBlock, last, 2);
    EXPECT_EQ(used.draft_tokens, late.draft_tokens);

    // Does the same after the head has read the text from the beginning.
    used.step(text, 0, 9, 0);
    used.step(text, 9, last, 0);
    EXPECT_EQ(used.draft_tokens, whole.draft_tokens);
  }
}

}  // namespace
}  // namespace octavo
