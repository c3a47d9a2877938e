#include "serve/late_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "serve/vector_text.h"

namespace octavo {
namespace {

constexpr std::string_view kField = "late_chunking_params";

std::string pair_text(std::size_t begin, std::size_t end) { return fmt::format("[{},{}]", begin, end); }

}  // namespace

std::string LateChunks::json() const {
  const std::string items = joined(chunks.size(), [&](std::size_t i) {
    const Chunk& chunk = chunks[i];
    const std::string characters = chunk.characters
                                       ? pair_text(static_cast<std::size_t>(chunk.characters->begin),
                                                   static_cast<std::size_t>(chunk.characters->end))
                                       : "null";
    return fmt::format(R"({{"token_range":{},"char_range":{}}})", pair_text(chunk.begin, chunk.end),
                       characters);
  });
  return fmt::format(R"({{"chunk_size":{},"input_tokens":{},"chunks":[{}],"strategy":"fixed_tokens"}})", size,
                     chunks.back().end, items);
}

std::vector<float> LateChunks::means(const std::vector<float>& vectors, std::size_t width) const {
  std::vector<float> all;
  for (const Chunk& chunk : chunks)
    for (std::size_t i = 0; i < width; ++i) {
      double sum = 0;
      for (std::size_t token = chunk.begin; token < chunk.end; ++token) sum += vectors[token * width + i];
      all.push_back(static_cast<float>(sum / static_cast<double>(chunk.end - chunk.begin)));
    }
  return all;
}

Result<> check_late_chunking(const Service& service, const openai::EmbeddingRequest& request, Task task) {
  if (!request.late_chunk_size) return {};
  if (task != Task::token_embed)
    return invalid(
        kField,
        "needs the task \"token_embed\": start the server with --pooler-config.task token_embed, or "
        "send POST /pooling with this task");
  const auto is_text = [](const openai::TextOrTokens& input) {
    const auto* text = std::get_if<std::string>(&input);
    return text != nullptr && !text->empty();
  };
  if (request.chat || !std::ranges::all_of(request.input, is_text))
    return invalid(kField, "works only for plain texts: input must be a text or a list of texts, not empty");
  if (request.fields.truncate || request.fields.pad)
    return invalid(kField, "cannot be combined with truncate_prompt_tokens or padding");
  const PoolingRules& rules = service.options.pooling;
  if (rules.step_tag || !rules.returned.empty())
    return invalid(kField, "needs the vectors of all tokens, but --pooler-config selects some of them");
  return {};
}

Result<LateChunks> late_chunks_of(const Service& service, std::string_view text, bool add_special_tokens,
                                  std::size_t tokens, std::int64_t size) {
  TRY(const std::vector<Tokenizer::Range> ranges, service.tokenizer.offsets(text, add_special_tokens));
  if (ranges.size() != tokens)
    return invalid(kField, "this tokenizer does not know the characters of each token");
  LateChunks late{.size = size};
  const std::size_t step = static_cast<std::size_t>(std::min(size, static_cast<std::int64_t>(tokens)));
  for (std::size_t begin = 0; begin < tokens; begin += step) {
    LateChunks::Chunk chunk{.begin = begin, .end = std::min(begin + step, tokens)};
    for (std::size_t i = begin; i < chunk.end; ++i) {
      if (ranges[i].begin >= ranges[i].end) continue;
      if (!chunk.characters) chunk.characters = ranges[i];
      chunk.characters->begin = std::min(chunk.characters->begin, ranges[i].begin);
      chunk.characters->end = std::max(chunk.characters->end, ranges[i].end);
    }
    late.chunks.push_back(chunk);
  }
  return late;
}

}  // namespace octavo
