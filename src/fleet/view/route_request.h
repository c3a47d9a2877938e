// The fields of a request that routing needs. scan_request() fills them from the body.
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

  struct {
    std::string error = {};   // why the body is not a JSON object; "": the body is a JSON object
    bool unreadable = false;  // the error is that the body is not valid JSON
  } body = {};
  // id of a stored response or conversation that the request continues or reads; "": none
  std::string stored_id = {};
  double timeout_s = 0;  // timeout that the client has set, in seconds since arrival; 0: none

  // Text of the first prompt. The text of a chat is its tools, roles and contents in order.
  std::string text = {};
  // Token ids of the prompt if the router knows them, otherwise estimated_tokens(text). Prefix keys are
  // computed from these numbers.
  std::vector<std::uint32_t> tokens = {};
  bool tokens_are_exact = false;
  bool several_prompts = false;
  bool truncated = false;  // the request has truncate_prompt_tokens, so the endpoint may shorten the prompt
  // hashes of images, videos and audio; two identical media have the same hash
  std::vector<std::uint64_t> media = {};
  struct MediaPosition {
    std::size_t at = 0;  // byte offset in `text`
    bool video = false;
    bool image = false;
  };
  std::vector<MediaPosition> media_positions = {};  // in the order of `media`

  int output_tokens_max = 0;  // maximum number of output tokens; 0: not set
  bool stream = false;
  // the endpoint runs tools for the request; its engine is idle while a tool runs
  bool server_tools = false;
  int priority = 0;
  std::string tenant = {};   // "": no tenant
  std::string session = {};  // id of the session whose KV cache an engine keeps; "": no session
  // Name of the conversation or of the user. Policies use it to keep related requests at one endpoint. "": no
  // name.
  std::string routing_key = {};

  // Header fields that policies read. Names are in lower case.
  std::vector<std::pair<std::string, std::string>> headers = {};

  std::optional<std::string_view> header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return std::nullopt;
  }
};

// Packs each four bytes of text into one number, as a stand-in for a token. The last number is padded with
// zero bytes. Equal prefixes of texts give equal prefixes of numbers. llm-d calls this the estimate
// tokenizer.
std::vector<std::uint32_t> estimated_tokens(std::string_view text);

// Estimated number of tokens of one image and of one video (llm-d's defaults).
struct MediaTokens {
  std::int64_t image = 640 * 360 / 1024;
  std::int64_t video = 10 * (640 * 360 / 1024);
};

// Inserts estimated tokens for images and videos at their positions in the text. Identical media get
// identical tokens. Does nothing if the request has exact tokens.
void estimate_media(RouteRequest& request, const MediaTokens& tokens);

}  // namespace octavo::fleet
