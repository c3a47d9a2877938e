// Pooling settings (vLLM's --pooler-config), which replace those of the model's files. Also: texts that are
// longer than the model's limit and are embedded in chunks.
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
  std::optional<bool> activated{};  // default for requests: whether vectors are normalised and scores
                                    // activated
  std::optional<int> dimensions{};  // default number of components of vectors
  int longest = 0;                  // maximum number of tokens of a text that is split into chunks; 0: texts
                                    // are not split
  // The score before activation is (score - mean) / sigma.
  float score_mean = 0, score_sigma = 1;
  // For vectors of tokens: returns only the vectors of this token, and only these components. Empty: all.
  std::optional<TokenId> step_tag{};
  std::vector<int> returned{};
  std::map<std::string, std::string, std::less<>> text_prompts{};  // prefixes of texts, by input type
  bool score_template = false;                                     // the chat template renders pairs of texts
};

// Texts in order; a long text is split into several chunks.
struct TextChunks {
  std::vector<Tokenizer::Texts> chunks{};
  std::vector<std::vector<int>> lengths{};  // numbers of tokens of each text's chunks

  // Splits the text into chunks of `most` tokens; the last one can be shorter.
  void add(Tokenizer::Texts text, std::size_t most);
};

// The mean of the vectors of a text's chunks, weighted by the chunks' numbers of tokens. Vectors must have
// equal sizes.
std::vector<float> mean_of_chunks(std::span<const std::vector<float>> vectors, std::span<const int> lengths);

}  // namespace octavo
