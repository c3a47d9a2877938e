// The data of a request that routing needs. One scan of the body makes it; the body does not change.
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
  std::string model = {};  // "": the body names no model, so any endpoint can be chosen
  std::string cache_salt = {};

  std::string body_error = {};       // reason why the body is not a JSON object; "": it is one
  bool unreadable = false;           // body_error means that the body is not JSON at all
  std::string stored_id = {};        // id of the stored response or conversation that the request continues
                                     // or reads; "": none
  double timeout_s = 0;              // the client's own limit on the time since arrival; 0: not set

  // The prompt. For a chat: tools, roles and contents in order. If there are several prompts: the first one.
  std::string text = {};
  // The prompt's token ids if the router knows them; otherwise its text with four bytes in each number.
  // Prefix keys are computed from it.
  std::vector<std::uint32_t> tokens = {};
  bool tokens_are_exact = false;
  bool several_prompts = false;
  bool truncated = false;                 // the endpoint may cut the prompt (truncate_prompt_tokens)
  std::vector<std::uint64_t> media = {};  // images, videos and audio; equal media have equal numbers
  struct MediaPlace {
    std::size_t at = 0;  // position in `text`, in bytes
    bool video = false;
    bool image = false;
  };
  std::vector<MediaPlace> media_places = {};  // [media]

  int output_tokens_max = 0;  // 0: not set
  bool stream = false;
  bool server_tools = false;  // the request has tools that the endpoint runs itself, while its engine is idle
  int priority = 0;
  std::string tenant = {};   // name of the tenant; "": none
  std::string session = {};  // id of the session; "": none

  // Header fields that policies can read; names are in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};

  std::optional<std::string_view> header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return std::nullopt;
  }
};

// Estimated tokens: the text with four bytes in each number, padded with zeros. Equal prefixes have equal
// estimates (llm-d's estimate tokenizer).
std::vector<std::uint32_t> estimated_tokens(std::string_view text);

// Estimated numbers of tokens for an image and for a video (llm-d's defaults).
struct MediaTokens {
  std::int64_t image = 640 * 360 / 1024;
  std::int64_t video = 10 * (640 * 360 / 1024);
};

// Inserts estimated tokens for images and videos at their positions; equal media get equal tokens. Exact
// tokens are not changed.
void estimate_media(RouteRequest& request, const MediaTokens& tokens);

}  // namespace octavo::fleet
