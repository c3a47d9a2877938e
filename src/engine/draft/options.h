// How tokens are proposed: names and meanings of vLLM's speculative configuration.
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
  int prompt_lookup_min = 5;  // tokens that must have come before alike
  int prompt_lookup_max = 5;  // tokens looked at
};

struct SuffixOptions {
  int max_tree_depth = 24;          // tokens looked at, and proposed at a time
  int max_cached_requests = 10000;  // past answers kept; 0: the sequence's own text alone
  double max_spec_factor = 1.0;     // draft tokens for each token that came before alike
  double min_token_prob = 0.1;      // draft tokens less likely are not made
};

struct DraftModelOptions {
  std::string model = {};             // folder or GGUF file of the draft model
  std::string quantization = "none";  // of its plain matrices, as EngineOptions::quantization
  std::optional<int> max_model_len = {};
  bool drawn = true;  // draft tokens are drawn as the answer's tokens are; false: the likeliest token
};

// A head that proposes from the hidden states of the engine's own model.
struct HeadOptions {
  enum class Kind : std::uint8_t { mtp, eagle, eagle3 };
  Kind kind = Kind::mtp;
  std::string model = {};  // its folder; empty: it is in the engine's checkpoint, which mtp alone can be
  bool drawn = true;       // as DraftModelOptions has it
};

// Heads for each place of a draft, which read a hidden state of the engine's own model.
struct PlaceHeadOptions {
  enum class Kind : std::uint8_t { medusa, mlp_speculator };
  Kind kind = Kind::medusa;
  std::string model = {};  // their folder
  bool drawn = true;       // as DraftModelOptions has it
};

// Draft tokens of each sequence while from..to sequences are in a step.
struct TokensPerBatchSize {
  int from = 1;
  int to = 1;
  int tokens = 0;
};

struct SpeculativeOptions {
  std::variant<NgramOptions, SuffixOptions, DraftModelOptions, HeadOptions, PlaceHeadOptions> method =
      NgramOptions{};
  int num_speculative_tokens = 5;                       // draft tokens of a sequence at a time, at most
  std::vector<TokensPerBatchSize> per_batch_size = {};  // empty: DraftPolicy chooses

  const DraftModelOptions* draft_model() const { return std::get_if<DraftModelOptions>(&method); }
  const HeadOptions* head() const { return std::get_if<HeadOptions>(&method); }
  const PlaceHeadOptions* place_heads() const { return std::get_if<PlaceHeadOptions>(&method); }
};

// Errors name the field and its limit.
Result<> validate(const SpeculativeOptions& options);

}  // namespace octavo
