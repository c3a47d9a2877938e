// Late chunking (Günther et al., "Late Chunking", 2024): the model reads a whole text, and the reply has the
// mean of the token vectors of each chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/openai/pooling_request.h"
#include "serve/service.h"

namespace octavo {

// The chunks of one text.
struct LateChunks {
  struct Chunk {
    std::size_t begin = 0, end = 0;                // tokens [begin, end)
    std::optional<Tokenizer::Range> characters{};  // nullopt: the chunk has only special tokens
  };
  std::int64_t size = 0;  // number of tokens of each chunk but the last
  std::vector<Chunk> chunks{};

  // Returns vLLM's description of the chunks, a JSON object.
  std::string json() const;
  // vectors: `width` numbers for each token. Returns `width` numbers for each chunk.
  std::vector<float> means(const std::vector<float>& vectors, std::size_t width) const;
};

// Returns an error if the request cannot have late chunking with this task.
Result<> check_late_chunking(const Service& service, const openai::EmbeddingRequest& request, Task task);

// text: the prompt with the given number of tokens
Result<LateChunks> late_chunks_of(const Service& service, std::string_view text, bool add_special_tokens,
                                  std::size_t tokens, std::int64_t size);

}  // namespace octavo
