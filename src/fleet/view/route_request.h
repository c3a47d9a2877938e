// The fields of a request that routing needs. One scan of the body fills them.
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
  std::string model = {};  // "": the body names no model, so any endpoint can serve the request
  std::string cache_salt = {};

  std::string body_error = {};       // reason why the body is not a JSON object; "": it is one
  bool unreadable = false;           // body_error means that the body is not valid JSON
  // id of the stored response or conversation that the request continues or reads; "": no id
  std::string stored_id = {};
  double timeout_s = 0;  // the client's limit on the time since arrival, in seconds; 0: no limit

  // Text of the first prompt. For a chat: tools, roles and contents in order.
  std::string text = {};
  // Token ids of the prompt if the router knows them; otherwise its text, with four bytes in each number.
  // Prefix keys are computed from them.
  std::vector<std::uint32_t> tokens = {};
  bool tokens_are_exact = false;
  bool several_prompts = false;
  bool truncated = false;                 // the endpoint may truncate the prompt (truncate_prompt_tokens)
  std::vector<std::uint64_t> media = {};  // hashes of images, videos and audio; equal media have equal hashes
  struct MediaPlace {
    std::size_t at = 0;  // byte offset in `text`
    bool video = false;
    bool image = false;
  };
  std::vector<MediaPlace> media_places = {};  // [media]

  int output_tokens_max = 0;  // maximum number of output tokens; 0: not set
  bool stream = false;
  bool server_tools = false;  // the endpoint runs tools for the request; meanwhile its engine is idle
  int priority = 0;
  std::string tenant = {};   // name of the tenant; "": no tenant
  std::string session = {};  // id of the session; "": no session

  // Header fields that policies read; names are in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};

  std::optional<std::string_view> header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return std::nullopt;
  }
};

// Returns estimated tokens: the text with four bytes in each number, padded with zeros. Equal prefixes have
// equal estimates (llm-d's estimate tokenizer).
std::vector<std::uint32_t> estimated_tokens(std::string_view text);

// Estimated number of tokens of an image and of a video (llm-d's defaults).
struct MediaTokens {
  std::int64_t image = 640 * 360 / 1024;
  std::int64_t video = 10 * (640 * 360 / 1024);
};

// Inserts estimated tokens of images and videos at their positions. Equal media get equal tokens. Exact
// tokens do not change.
void estimate_media(RouteRequest& request, const MediaTokens& tokens);

}  // namespace octavo::fleet
