// Images and sounds of chats, fetched from addresses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "serve/openai/chat_request.h"

namespace octavo {

// Addresses that are allowed.
struct MediaSources {
  std::vector<std::string> domains{};  // hosts whose http: and https: addresses are fetched
  std::string local_path{};            // a folder below which file: addresses are read; "": none are

  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;  // of one request
  static constexpr int kTimeoutMs = 10'000;                        // for one of them, all in all
  static constexpr int kRedirectsMax = 3;                          // each to one of the domains
};

// http:, https: or file:.
bool is_address(std::string_view url);

// The bytes at the URL. Errors (invalid_argument): the host or path is not allowed, no such file, a status
// other than 200, more than bytes_max, or a timeout.
Result<std::string> fetch_media(const MediaSources& sources, const std::string& url,
                                std::size_t bytes_max = MediaSources::kBytesMax);

// Sets Media::bytes of all media with an address. Errors as above, with the part's field.
Result<> fetch_all(const MediaSources& sources, std::vector<openai::ChatPrompt::Media>& media);

}  // namespace octavo
