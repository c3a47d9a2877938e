// Options of speculative decoding. Names and meanings follow vLLM's SpeculativeConfig.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "request/engine_stats.h"

namespace octavo {

struct NgramOptions {
  int prompt_lookup_min = 5;
  int prompt_lookup_max = 5;
};

struct SuffixOptions {
  int max_tree_depth = 24;  // maximum number of tokens of a match, and maximum number of draft tokens
  // number of past outputs to keep; 0: only the sequence's own text is used
  int max_cached_requests = 10000;
  double max_spec_factor = 1.0;
  double min_token_prob = 0.1;
};

struct DraftModelOptions {
  std::string model = {};             // folder or GGUF file of the draft model
  std::string quantization = "none";  // see ModelOptions::quantization
  std::optional<int> max_model_len = {};
  // true: draft tokens are sampled like output tokens. false: they are the most likely tokens.
  bool drawn = true;
};

struct HeadOptions {
  enum class Kind : std::uint8_t { mtp, eagle, eagle3 };
  Kind kind = Kind::mtp;
  // folder of the head; empty if the head is in the target model's checkpoint (mtp only)
  std::string model = {};
  bool drawn = true;  // see DraftModelOptions
};

// Heads that read the hidden states of the target model. There is one head for each position of a draft.
struct PositionHeadOptions {
  enum class Kind : std::uint8_t { medusa, mlp_speculator };
  Kind kind = Kind::medusa;
  std::string model = {};
  bool drawn = true;  // see DraftModelOptions
};

// Number of draft tokens for each sequence in steps with at least `from` and at most `to` sequences.
struct TokensPerBatchSize {
  int from = 1;
  int to = 1;
  int tokens = 0;
};

struct SpeculativeOptions {
  std::variant<NgramOptions, SuffixOptions, DraftModelOptions, HeadOptions, PositionHeadOptions> method =
      NgramOptions{};
  int num_speculative_tokens = 5;  // maximum number of draft tokens of a sequence in a step
  std::vector<TokensPerBatchSize> per_batch_size = {};  // empty: DraftPolicy chooses

  const DraftModelOptions* draft_model() const { return std::get_if<DraftModelOptions>(&method); }
  const HeadOptions* head() const { return std::get_if<HeadOptions>(&method); }
  const PositionHeadOptions* position_heads() const { return std::get_if<PositionHeadOptions>(&method); }
};

// Returns an error that names the field and its limit.
Result<> validate(const SpeculativeOptions& options);

}  // namespace octavo
