// Tokenises the texts of pooling requests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "serve/openai/pooling_request.h"
#include "serve/prepare.h"
#include "serve/service.h"

namespace octavo {

// Returns the maximum number of tokens of one text. This is above the model's limit if long texts are
// embedded in chunks.
std::size_t longest_text(const Service& service, Task task);
// Returns the number of tokens to which the request truncates a text, at most `longest`.
Result<std::size_t> most_tokens(const openai::PoolingFields& fields, std::size_t longest);
Result<> check_length(std::size_t tokens, std::size_t most, std::string_view field);

// Tokenises a text, and truncates it if `fields` requires this. Returns an error with field `field` if the
// result is empty or longer than `longest`.
Result<Tokenizer::Texts> tokens_of(const Service& service, const openai::TextOrTokens& input,
                                   const openai::PoolingFields& fields, std::size_t longest,
                                   std::string_view field = "input");
// Returns the text, shortened to its first `most` tokens without special tokens. most: 0: not shortened.
Result<std::string> shortened(const Service& service, const std::string& text, int most);
// Renders a conversation with the chat template, tokenises it and decodes its images. Returns an error if the
// truncation would cut an image.
Result<ChatTokens> tokens_of_chat(const Service& service, const openai::ChatPrompt& chat,
                                  const openai::PoolingFields& fields, std::size_t longest);

// Returns the prompt to put before texts of this input type, or "". input_type: a name from Cohere's or
// Jina's API. The prompt has this name in the model's files, or the corresponding name of Sentence
// Transformers.
std::string_view prompt_for(const Service& service, const std::string& input_type);
// Returns an error if the request's input_type is neither one of Cohere's types nor the name of a prompt or
// of the request's adapter.
Result<> check_input_type(const Service& service, const openai::EmbedByTypeRequest& request);

}  // namespace octavo
