// The number of cached prompt tokens in the usage of responses: with OpenAI's, Anthropic's and the Responses
// API's field names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns the number of prompt tokens that the engine found in its cache. Returns 0 if the response does
// not report it.
std::int64_t cached_tokens(std::string_view answer);

// Sets the number of cached tokens in the usage of a response or an event, if it has a usage. The decode
// engine's own number is wrong: it counts the whole prompt as cached, because it fetched all blocks from the
// prefill engine. Adds no number 0 to a usage without one, because engines without
// --enable-prompt-tokens-details report no number, although they may have cached tokens.
std::string with_cached_tokens(const std::string& answer, std::int64_t tokens);

}  // namespace octavo::fleet
