// For tests: the golden checkpoints of tests/data/models, and running a model over a prompt in any chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dist/rank_layout.h"
#include "model/decoder.h"
#include "model/drafter.h"
#include "model/place_heads.h"

namespace octavo::golden {

struct Golden {
  std::string name;
  std::string directory;
  std::vector<std::int32_t> ids;
  std::vector<float> logits;  // [ids, vocab]
  // KL(f32 || transformers' bf16) at each position; empty when not stored in bf16.
  std::vector<float> bf16_kl;
  std::vector<float> bf16_logits = {};  // transformers', as `logits`; empty when not kept
  std::optional<int> max_model_len;
  std::vector<float> next_logits = {};  // for drafters: see tools/goldens/make_drafter_goldens.py
};

inline constexpr const char* kModels = "tests/data/models";
inline constexpr const char* kDrafters = "tests/data/drafters";
inline constexpr const char* kQuantized = "tests/data/quantized";

// Every case under a folder, ascending by name; tests run in the project's root.
std::vector<std::string> names(const std::string& root = kModels);
Golden read(const std::string& name, const std::string& root = kModels);

// The adapter of all tokens of a run.
struct TestAdapter {
  const Adapter* adapter = nullptr;
  int max_rank = 0;
};

// Logits of every position, [ids, vocab], when the prompt is run in chunks of these sizes (the last one
// repeats). The cache begins as NaN, blocks are not in order, and table entries that left a window are
// wiped, so that a wrong read of an operator changes the result. before_chunk, if not empty, is called before
// each chunk.
Result<std::vector<float>> run(const Model& model, Backend& backend, std::span<const std::int32_t> ids,
                               const std::vector<int>& chunks, const CacheOptions& cache,
                               const TestAdapter& adapter = {}, const RankGroups& ranks = {},
                               const std::function<void()>& before_chunk = {});

// The same for a network that proposes for another: after every token but the first, and after the
// likeliest next token. The text is read in chunks of this size.
struct DrafterLogits {
  std::vector<float> logits, next;
};
Result<DrafterLogits> run_drafter(const Model& model, const Drafter& drafter, Backend& backend,
                                  std::span<const std::int32_t> ids, int chunk, const CacheOptions& cache);

// The same for heads that propose one position each, [places, ids - places, vocab]: from each token's
// hidden state and the text's next tokens. Reserves workspaces for `chunk` sequences.
Result<std::vector<float>> run_place_heads(const Model& model, PlaceHeads& heads, Backend& backend,
                                           std::span<const std::int32_t> ids, int chunk, const CacheOptions& cache);

float max_difference(std::span<const float> a, std::span<const float> b);
// Mean over the rows of KL(p || q), from logits.
double mean_kl(std::span<const float> p, std::span<const float> q, std::int64_t vocab);

}  // namespace octavo::golden
