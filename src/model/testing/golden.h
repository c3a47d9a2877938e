// For tests: reads the golden checkpoints in tests/data/models, and runs a model over a prompt in chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dist/rank_layout.h"
#include "model/decoder.h"
#include "model/drafter.h"
#include "model/position_heads.h"

namespace octavo::golden {

struct Golden {
  std::string name;
  std::string directory;
  std::vector<std::int32_t> ids;
  std::vector<float> logits;  // [ids, vocab]
  // KL divergence between f32 and transformers' bf16 at each position. Empty if the case has none.
  std::vector<float> bf16_kl;
  std::vector<float> bf16_logits = {};  // logits of transformers in bf16, [ids, vocab]; empty if not stored
  std::optional<int> max_model_len;
  std::vector<float> next_logits = {};  // only for drafters: see tools/goldens/make_drafter_goldens.py
};

inline constexpr const char* kModels = "tests/data/models";
inline constexpr const char* kDrafters = "tests/data/drafters";
inline constexpr const char* kQuantized = "tests/data/quantized";
inline constexpr const char* kRounded = "tests/data/rounded";

// Names of all cases in a folder, ascending. Tests run in the project's root folder.
std::vector<std::string> names(const std::string& root = kModels);
Golden read(const std::string& name, const std::string& root = kModels);

// The paths of a case in tests/data/adapters. Both are GGUF files, or both are folders.
struct AdapterCase {
  std::string base, adapter;
};
AdapterCase adapter_case(const std::string& name);

// An adapter that applies to all tokens of a run.
struct TestAdapter {
  const Adapter* adapter = nullptr;
  int max_rank = 0;
};

// Returns the logits of every position, [ids, vocab]. `chunks` are the sizes of the chunks; the last size
// repeats. To detect wrong reads, the KV cache starts as NaN, blocks are out of order, and block table
// entries outside a window are overwritten. `before_chunk`, if set, is called before each chunk.
Result<std::vector<float>> run(const Model& model, Backend& backend, std::span<const std::int32_t> ids,
                               const std::vector<int>& chunks, const CacheOptions& cache,
                               const TestAdapter& adapter = {}, const RankGroups& ranks = {},
                               const std::function<void()>& before_chunk = {});

// Logits of a drafter. `logits`: after every token of the text except the first; `next`: after the draft
// token that follows the text.
struct DrafterLogits {
  std::vector<float> logits, next;
};
Result<DrafterLogits> run_drafter(const Model& model, const Drafter& drafter, Backend& backend,
                                  std::span<const std::int32_t> ids, int chunk, const CacheOptions& cache);

// Returns the logits of draft heads (position_heads.h) for every token of the text, [positions, ids -
// positions, vocab]. The heads read the token's residual and the following tokens of the text. Reserves
// workspaces for `chunk` sequences.
Result<std::vector<float>> run_position_heads(const Model& model, PositionHeads& heads, Backend& backend,
                                              std::span<const std::int32_t> ids, int chunk,
                                              const CacheOptions& cache);

float max_difference(std::span<const float> a, std::span<const float> b);
// Mean Kullback-Leibler divergence of q from p over the rows. p and q are logits.
double mean_kl(std::span<const float> p, std::span<const float> q, std::int64_t vocab);

}  // namespace octavo::golden
