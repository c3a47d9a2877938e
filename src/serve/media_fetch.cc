#include "serve/media_fetch.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "http/client.h"
#include "http/target.h"
#include "http/url.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFile = "file://";

Result<std::string> read_file(const MediaSources& sources, std::string_view path, std::size_t bytes_max) {
  if (sources.local_path.empty())
    return invalid("", "file: URLs need a server with --allowed-local-media-path: send a data: URL");
  if (path.starts_with("localhost/")) path.remove_prefix(std::string_view("localhost").size());
  const std::optional<std::string> decoded = http::percent_decoded(path, false);
  if (!decoded) return invalid("", "the URL has an invalid % sequence");
  std::error_code error;
  const fs::path root = fs::canonical(sources.local_path, error);
  const fs::path file = error ? fs::path() : fs::canonical(fs::path(*decoded), error);
  // canonical() has resolved symbolic links, so their targets must also be below the folder.
  const bool below = !error && std::ranges::mismatch(root, file).in1 == root.end();
  if (!below || !fs::is_regular_file(file, error))
    return invalid("", "the folder of --allowed-local-media-path does not contain this file");
  if (fs::file_size(file, error) > bytes_max)
    return invalid("", "all media that a request names by URL may have at most {} bytes together",
                   MediaSources::kBytesMax);
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  if (!in) return invalid("", "the server cannot read the file");
  return bytes;
}

Result<> check_host(const MediaSources& sources, const http::Url& url) {
  if (sources.domains.empty()) return {};
  if (std::ranges::any_of(sources.domains, [&](const std::string& domain) {
        return http::equal_ignoring_case(domain, url.host);
      }))
    return {};
  return invalid("", "the host {} is not in --allowed-media-domains", url.host);
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Sends one request. Returns the response's head and, unless it is a redirection, the body.
Result<http::Response> get(const MediaSources& sources, const http::Url& url, std::size_t bytes_max,
                           std::int64_t deadline_us) {
  const auto left_ms = [&] { return static_cast<int>((deadline_us - now_us()) / 1000); };
  const auto late = [&] {
    return invalid("", "{} did not answer within {} ms", url.host, MediaSources::kTimeoutMs);
  };
  if (left_ms() <= 0) return late();
  TRY(http::Client client, http::Client::connect({.host = url.host,
                                                  .port = url.port,
                                                  .tls = url.tls,
                                                  .timeout_ms = left_ms(),
                                                  .deadline_us = deadline_us,
                                                  .body_bytes_max = bytes_max,
                                                  .public_only = sources.domains.empty()}));
  http::Headers headers;
  headers.add("User-Agent", "octavo");
  headers.add("Accept-Encoding", "identity");
  headers.add("Connection", "close");
  TRY(http::Response response, client.open("GET", url.target, {}, headers));
  if (is_redirect(response.status)) return response;
  for (;;) {
    if (left_ms() <= 0) return late();
    TRY(const std::optional<std::string> piece, client.read_for(left_ms()));
    if (!piece) return response;
    response.body += *piece;
  }
}

Result<std::string> fetch_url(const MediaSources& sources, std::string_view text, std::size_t bytes_max) {
  const std::int64_t deadline_us = now_us() + std::int64_t{1000} * MediaSources::kTimeoutMs;
  TRY(http::Url url, http::parse_url(text));
  for (int redirects = 0; redirects <= MediaSources::kRedirectsMax; ++redirects) {
    TRY_VOID(check_host(sources, url));
    auto response = get(sources, url, bytes_max, deadline_us);
    if (!response && response.error().code == ErrorCode::unsupported)
      return invalid("",
                     "{}: start the server with --allowed-media-domains {} to allow it, or send a data: URL",
                     response.error().message, url.host);
    if (!response) return invalid("", "cannot be downloaded: {}", response.error().message);
    if (response->status == 200) return std::move(response->body);
    if (!is_redirect(response->status))
      return invalid("", "{} returned status {}", url.host, response->status);
    TRY(url, redirected(url, response->headers.find("Location").value_or("")));
  }
  return invalid("", "the URL redirects more than {} times", MediaSources::kRedirectsMax);
}

}  // namespace

bool is_address(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://") || url.starts_with("file:");
}

Result<std::string> fetch_media(const MediaSources& sources, const std::string& url, std::size_t bytes_max) {
  if (url.starts_with(kFile))
    return read_file(sources, std::string_view(url).substr(kFile.size()), bytes_max);
  if (url.starts_with("file:")) return invalid("", "must be file:///path");
  return fetch_url(sources, url, bytes_max);
}

Result<> fetch_all(const MediaSources& sources, std::vector<openai::ChatPrompt::Media>& media) {
  std::size_t left = MediaSources::kBytesMax;
  for (openai::ChatPrompt::Media& one : media) {
    if (!is_address(one.url) || one.bytes) continue;
    auto bytes = fetch_media(sources, one.url, left);
    if (!bytes) return invalid(one.field, "{}", bytes.error().message);
    left -= bytes->size();
    one.bytes = *std::move(bytes);
  }
  return {};
}

}  // namespace octavo
