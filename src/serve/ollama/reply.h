// Replies of Ollama's /api/chat and /api/generate. A stream has one JSON object per line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "serve/ollama/requests.h"
#include "serve/openai/reply.h"

namespace octavo::ollama {

// Version of Ollama's API. Clients compare it with the lowest version that they support.
inline constexpr std::string_view kApiVersion = "0.13.0";

// The field that contains the reply's text: `message` or `response`.
enum class Shape : std::uint8_t { chat, generate };

std::unique_ptr<openai::Reply> make_reply(Shape shape, const Tokenizer& tokenizer,
                                          openai::ReplyOptions options);

std::string hold_reply(Shape shape, const Hold& hold);

// Returns the current time in Ollama's format: RFC 3339 with microseconds.
std::string time_now();
std::string time_of(std::int64_t seconds_since_1970);

}  // namespace octavo::ollama
