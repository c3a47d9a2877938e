// Fetches images, videos and audio of chats from URLs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo {

// Sources from which media may be fetched, and limits.
struct MediaSources {
  // Hosts that http: and https: URLs may name. Empty: all hosts with a public address, as in vLLM, which also
  // allows private ones.
  std::vector<std::string> domains{};
  std::string local_path{};            // folder that file: URLs may read; "": file: URLs are refused

  // maximum bytes of all media in one request
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;
  // time limit for one URL, including redirections
  static constexpr int kTimeoutMs = 10'000;
  // maximum number of redirections; each must lead to an allowed host
  static constexpr int kRedirectsMax = 3;
};

// Returns whether the text begins with http:, https: or file:.
bool is_address(std::string_view url);

// Returns the bytes at the URL. Returns invalid_argument if the host or path is not allowed, the file does
// not exist, the HTTP status is not 200, the content has more than bytes_max bytes, or the time limit is
// exceeded.
Result<std::string> fetch_media(const MediaSources& sources, const std::string& url,
                                std::size_t bytes_max = MediaSources::kBytesMax);

// Fetches all media that have a URL (is_address), and sets Media::bytes. Returns the errors of fetch_media(),
// with Media::field.
Result<> fetch_all(const MediaSources& sources, std::vector<openai::ChatPrompt::Media>& media);

}  // namespace octavo
