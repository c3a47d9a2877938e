// Tokenises the texts of a pooling body.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/openai/pooling_request.h"
#include "serve/service.h"

namespace octavo {

// Maximum number of tokens of one text. It exceeds the model's limit if long texts are embedded in chunks.
std::size_t longest_text(const Service& service, Task task);
// Number of tokens to which the request truncates a text; at most `longest`.
Result<std::size_t> most_tokens(const openai::PoolingFields& fields, std::size_t longest);
Result<> check_length(std::size_t tokens, std::size_t most, std::string_view field);

// The tokens of a text, truncated by `fields`. Errors: the text is empty, or longer than `longest`; `field`
// is its name in errors.
Result<Tokenizer::Texts> tokens_of(const Service& service, const openai::TextOrTokens& input,
                                   const openai::PoolingFields& fields, std::size_t longest,
                                   std::string_view field = "input");
// The tokens of a conversation, rendered by the chat template.
Result<Tokenizer::Texts> tokens_of_chat(const Service& service, const openai::ChatPrompt& chat,
                                        const openai::PoolingFields& fields, std::size_t longest);

// The prompt before texts of this input type, a name of Cohere's or Jina's API. It is found by the same name
// or by the corresponding names of Sentence Transformers. "": none.
std::string_view prompt_for(const Service& service, const std::string& input_type);
// Errors: the type is neither Cohere's nor the name of a prompt or adapter of the model.
Result<> check_input_type(const Service& service, const openai::EmbedByTypeRequest& request);

}  // namespace octavo
