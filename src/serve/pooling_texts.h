// Converts the texts of a pooling body to the tokens that the model reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/openai/pooling_request.h"
#include "serve/service.h"

namespace octavo {

// Most tokens of one text: more than the model reads where long texts of vectors come in chunks.
std::size_t longest_text(const Service& service, Task task);
// At most the tokens that the request keeps of a text.
Result<std::size_t> most_tokens(const openai::PoolingFields& fields, std::size_t longest);
Result<> check_length(std::size_t tokens, std::size_t most, std::string_view field);

// Truncated as the fields say. Errors: the text is empty, or longer than `longest`; `field` names it.
Result<Tokenizer::Texts> tokens_of(const Service& service, const openai::TextOrTokens& input,
                                   const openai::PoolingFields& fields, std::size_t longest,
                                   std::string_view field = "input");
// A conversation as the chat template writes it.
Result<Tokenizer::Texts> tokens_of_chat(const Service& service, const openai::ChatPrompt& chat,
                                        const openai::PoolingFields& fields, std::size_t longest);

// The prompt before texts of a type that Cohere and Jina name: by its own name, or by those that Sentence
// Transformers folders have for it. "": none.
std::string_view prompt_for(const Service& service, const std::string& input_type);
// Errors: a type that is neither Cohere's nor one of the model's prompts or adapters.
Result<> check_input_type(const Service& service, const openai::EmbedByTypeRequest& request);

}  // namespace octavo
