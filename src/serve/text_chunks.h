// Pooling settings (vLLM's --pooler-config), which override the settings in the model's files, and the
// splitting of long texts into chunks.
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
  std::optional<Task> task{};       // default task of /pooling; nullopt: the model's task
  std::optional<bool> activated{};  // default of requests: whether to normalise vectors and activate scores
  std::optional<int> dimensions{};  // default number of dimensions of vectors
  int longest = 0;  // maximum number of tokens of a text that is split into chunks; 0: texts are not split
  // Parameters of scores: before the activation, a score becomes (score - mean) / sigma.
  float score_mean = 0, score_sigma = 1;
  // Used for token vectors: the reply has only the vectors of this token, and only these components. If
  // empty, it has all components.
  std::optional<TokenId> step_tag{};
  std::vector<int> returned{};
  std::map<std::string, std::string, std::less<>> text_prompts{};  // prefixes of texts, by input type
  bool score_template = false;
};

// Texts in order. A long text is split into several chunks.
struct TextChunks {
  std::vector<Tokenizer::Texts> chunks{};
  std::vector<std::vector<int>> lengths{};  // for each text, the numbers of tokens of its chunks

  // Splits the text into chunks of `most` tokens. The last chunk can be shorter.
  void add(Tokenizer::Texts text, std::size_t most);
};

// Returns the mean of the vectors of a text's chunks, weighted by the numbers of tokens. The vectors must
// have equal sizes.
std::vector<float> mean_of_chunks(std::span<const std::vector<float>> vectors, std::span<const int> lengths);

}  // namespace octavo
