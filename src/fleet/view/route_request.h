// A request as far as routing looks at it. Made once by one scan of the body; the body is not changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo::fleet {

struct RouteRequest {
  std::string model = {};  // "": the body names none, any endpoint will do
  std::string cache_salt = {};

  std::string body_error = {};  // why the body is no JSON object; "": it is one
  bool unreadable = false;      // body_error says that it is no JSON at all
  std::string stored_response = {};  // id of the stored response that it continues or asks for; "": none
  double timeout_s = 0;              // the client's own deadline, since arrival; 0 if not set

  // The prompt; for a chat the tools, roles and contents in order; the first one of several prompts.
  std::string text = {};
  // The prompt's token ids where the router knows them, else its text with four bytes to each number: what
  // prefix keys are made of.
  std::vector<std::uint32_t> tokens = {};
  bool tokens_are_exact = false;
  bool several_prompts = false;
  bool truncated = false;                 // the endpoint may cut the prompt (truncate_prompt_tokens)
  std::vector<std::uint64_t> media = {};  // images, videos and sound: equal numbers for equal ones
  struct MediaPlace {
    std::size_t at = 0;  // bytes of `text` before it
    bool video = false;
    bool image = false;
  };
  std::vector<MediaPlace> media_places = {};  // [media]

  int output_tokens_max = 0;  // 0: not said
  bool stream = false;
  bool server_tools = false;  // it has tools that the endpoint runs itself, while its engine is idle
  int priority = 0;
  std::string tenant = {};   // who is charged; "" when nobody is
  std::string session = {};  // "": none

  // The header fields that policies may read, names in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};

  std::optional<std::string_view> header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return std::nullopt;
  }
};

// Text as numbers, four bytes to each, the last one filled up with zeros: an estimate of tokens that is equal
// for equal prefixes (llm-d's estimate tokenizer).
std::vector<std::uint32_t> estimated_tokens(std::string_view text);

// Tokens that an image, and a video, count as where tokens are estimated (llm-d's defaults).
struct MediaTokens {
  std::int64_t image = 640 * 360 / 1024;
  std::int64_t video = 10 * (640 * 360 / 1024);
};

// Puts those tokens among the text's, at the places of the images and videos; equal ones for equal ones. Tokens
// that are exact stay.
void estimate_media(RouteRequest& request, const MediaTokens& tokens);

}  // namespace octavo::fleet
