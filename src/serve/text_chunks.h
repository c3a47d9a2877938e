// How texts are read where an operator wants it otherwise than the model's files say (vLLM's
// --pooler-config), and texts that are longer than the model reads, in chunks.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "request/pooling.h"
#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

struct PoolingRules {
  std::optional<Task> task{};  // of /pooling, where a request says nothing; nothing: the model's
  std::optional<bool>
      activated{};  // vectors are normalised and scores activated where a request says nothing
  std::optional<int> dimensions{};  // of vectors, likewise
  int longest = 0;                  // tokens of a text that may be read in chunks; 0: none is
  // A score counts as (score - mean) / sigma, before its activation.
  float score_mean = 0, score_sigma = 1;
  // Of vectors of tokens: those of this token alone are given, of each these numbers; empty: all of them.
  std::optional<TokenId> step_tag{};
  std::vector<int> returned{};
};

// Texts one behind the other, of which long ones are several chunks.
struct TextChunks {
  std::vector<Tokenizer::Texts> chunks{};
  std::vector<std::vector<int>> lengths{};  // tokens of each text's chunks

  // In chunks of `most` tokens and one of what is left.
  void add(Tokenizer::Texts text, std::size_t most);
};

// The mean of the vectors of a text's chunks, each as often as it has tokens. lengths: as many as vectors,
// which are equally long.
std::vector<float> mean_of_chunks(std::span<const std::vector<float>> vectors, std::span<const int> lengths);

}  // namespace octavo
