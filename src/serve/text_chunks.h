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
  std::optional<bool> activated{};  // default: whether vectors are normalised and scores become
                                    // probabilities; nullopt: as the model's files say
  std::optional<int> dimensions{};  // default number of components of vectors; nullopt: all
  // Maximum number of tokens of a text for Task::embed. Texts longer than max_model_len are split into
  // chunks. 0: no text may be longer than max_model_len.
  int longest = 0;
  // Parameters of scores: before the activation, a score becomes (score - mean) / sigma.
  float score_mean = 0, score_sigma = 1;
  // For token vectors: the reply has only the vectors at tokens `step_tag` (nullopt: at all tokens), and only
  // the components `returned` (empty: all components).
  std::optional<TokenId> step_tag{};
  std::vector<int> returned{};
  std::map<std::string, std::string, std::less<>> text_prompts{};  // prefixes of texts, by input type
  bool score_template = false;
};

// Texts in order. A long text is split into several chunks.
struct TextChunks {
  std::vector<Tokenizer::Texts> chunks{};
  std::vector<std::vector<int>> lengths{};  // lengths[i]: number of tokens of each chunk of text i

  // Splits the text into chunks of `most` tokens. The last chunk can be shorter.
  void add(Tokenizer::Texts text, std::size_t most);
};

// Returns the mean of the vectors of a text's chunks, weighted by the numbers of tokens. The vectors must
// have equal sizes.
std::vector<float> mean_of_chunks(std::span<const std::vector<float>> vectors, std::span<const int> lengths);

}  // namespace octavo
