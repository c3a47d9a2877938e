// Fetches images and audio of chats from URLs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo {

// Addresses from which media may be fetched.
struct MediaSources {
  std::vector<std::string> domains{};  // allowed hosts for http: and https: URLs
  std::string local_path{};            // folder below which file: URLs may be read; "": file: URLs are
                                       // refused

  // maximum bytes of all media of one request
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;
  // time limit for one URL, including redirections
  static constexpr int kTimeoutMs = 10'000;
  // maximum number of redirections; the target of each must be an allowed host
  static constexpr int kRedirectsMax = 3;
};

// Whether the text is a URL that begins with http:, https: or file:.
bool is_address(std::string_view url);

// Fetches the bytes at the URL. Errors (invalid_argument): the host or path is not allowed, the file does not
// exist, the status is not 200, more than bytes_max bytes, or a timeout.
Result<std::string> fetch_media(const MediaSources& sources, const std::string& url,
                                std::size_t bytes_max = MediaSources::kBytesMax);

// Fetches all media that have a URL, and sets Media::bytes. Errors: as above, with the field of the message
// part.
Result<> fetch_all(const MediaSources& sources, std::vector<openai::ChatPrompt::Media>& media);

}  // namespace octavo
