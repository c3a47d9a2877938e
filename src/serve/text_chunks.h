// Pooling settings of the operator that replace those of the model's files (vLLM's --pooler-config), and
// texts longer than the model's limit, read in chunks.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "request/pooling.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

struct PoolingRules {
  std::optional<Task> task{};       // default of /pooling; nullopt: the model's
  std::optional<bool> activated{};  // default of requests: normalise vectors, activate scores
  std::optional<int> dimensions{};  // of vectors, default of requests
  int longest = 0;                  // maximum number of tokens of a text in chunks; 0: texts are not cut
  // The score is (score - mean) / sigma, before its activation.
  float score_mean = 0, score_sigma = 1;
  // For vectors of tokens: returns only those of this token, and only these components; empty: all.
  std::optional<TokenId> step_tag{};
  std::vector<int> returned{};
  std::map<std::string, std::string, std::less<>>
      text_prompts{};           // prefix of texts, by the name of their kind
  bool score_template = false;  // pairs are rendered by the chat template
};

// Texts in order; a long text is several chunks.
struct TextChunks {
  std::vector<Tokenizer::Texts> chunks{};
  std::vector<std::vector<int>> lengths{};  // tokens of each text's chunks

  // Cuts the text into chunks of `most` tokens; the last can be shorter.
  void add(Tokenizer::Texts text, std::size_t most);
};

// The mean of the vectors of a text's chunks, weighted by their tokens. lengths: tokens of each chunk;
// vectors have equal sizes.
std::vector<float> mean_of_chunks(std::span<const std::vector<float>> vectors, std::span<const int> lengths);

}  // namespace octavo
