#include "hub/hub.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "http/target.h"
#include "hub/model_name.h"

namespace octavo::hub {
namespace {

constexpr int kTimeoutMs = 30'000;  // for each wait for bytes
constexpr int kRedirectsMax = 10;
constexpr std::size_t kListingBytesMax = 64 << 20;
constexpr std::size_t kFilesMax = 100'000;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 44;
constexpr std::size_t kErrorBytesMax = 400;  // of the server's message, shown in errors

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::optional<std::uint64_t> number(std::optional<std::string_view> text) {
  std::uint64_t value = 0;
  if (!text || text->empty()) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// Returns abc for `"abc"` and `W/"abc"` if it can be a file name.
std::optional<std::string> plain_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"'))
    etag = etag.substr(1, etag.size() - 2);
  const auto harmless = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  };
  if (etag.empty() || etag.size() > 200 || !std::ranges::all_of(etag, harmless)) return std::nullopt;
  return std::string(etag);
}

// Whether the file stays inside of the folder.
bool is_inside(std::string_view file) {
  const auto forbidden = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  };
  if (file.size() > 1000 || std::ranges::any_of(file, forbidden)) return false;
  while (true) {
    const std::size_t slash = std::min(file.find('/'), file.size());
    const std::string_view segment = file.substr(0, slash);
    if (segment.empty() || segment.size() > 200 || segment == "." || segment == "..") return false;
    if (slash == file.size()) return true;
    file.remove_prefix(slash + 1);
  }
}

// A path segment: branch names may contain slashes.
std::string segment(const std::string& text) {
  std::string out;
  for (const char c : http::percent_encoded(text)) c == '/' ? out += "%2F" : out += c;
  return out;
}

std::string printable(std::string_view text) {
  std::string out(text.substr(0, kErrorBytesMax));
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return out;
}

Result<Listing> parse_listing(const std::string& body) {
  const auto senseless = [](std::string_view why) {
    return failure(ErrorCode::unavailable, "the hub's list of files makes no sense: {}", why);
  };
  boost::system::error_code wrong;
  const boost::json::value json = boost::json::parse(body, wrong);
  if (wrong || !json.is_object()) return senseless("it is no JSON object");
  const boost::json::value* sha = json.get_object().if_contains("sha");
  const boost::json::value* siblings = json.get_object().if_contains("siblings");
  if (sha == nullptr || !sha->is_string() || !is_commit(sha->get_string()))
    return senseless("it names no commit");
  if (siblings == nullptr || !siblings->is_array() || siblings->get_array().size() > kFilesMax)
    return senseless("there is none");
  Listing listing{.commit = std::string(sha->get_string()), .files = {}};
  for (const boost::json::value& sibling : siblings->get_array()) {
    const boost::json::value* name = sibling.find_pointer("/rfilename", wrong);
    if (name == nullptr || !name->is_string()) return senseless("a file has no name");
    if (!is_inside(name->get_string()))
      return field_failure("model", ErrorCode::corrupt, "a file name points outside of the folder: {}",
                           printable(name->get_string()));
    listing.files.emplace_back(name->get_string());
  }
  return listing;
}

}  // namespace

Result<Hub> Hub::make(const Settings& settings, std::string repo) {
  auto endpoint = http::parse_url(settings.endpoint);
  if (!endpoint) endpoint.error().field = "HF_ENDPOINT";
  TRY(http::Url url, std::move(endpoint));
  while (url.target.ends_with('/')) url.target.pop_back();
  const auto forbidden = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
  if (std::ranges::any_of(settings.token, forbidden))
    return invalid("HF_TOKEN", "contains spaces or control characters, which tokens do not have");
  return Hub(std::move(url), settings.token, std::move(repo));
}

http::Url Hub::file_url(const std::string& commit, const std::string& file) const {
  http::Url url = endpoint_;
  url.target += fmt::format("/{}/resolve/{}/{}", repo_, commit, http::percent_encoded(file));
  return url;
}

Result<Opened> Hub::ask(std::string_view method, const http::Url& url, const http::Headers& headers) const {
  http::Headers all = headers;
  all.add("User-Agent", "octavo");
  all.add("Accept-Encoding", "identity");  // so that sizes are those of the files
  all.add("Connection", "close");
  if (!token_.empty() && same_origin(url, endpoint_)) all.add("Authorization", "Bearer " + token_);
  const auto exchange = [&]() -> Result<Opened> {
    TRY(http::Client client,
        http::Client::connect({.host = url.host,
                               .port = url.port,
                               .tls = url.tls,
                               .timeout_ms = kTimeoutMs,
                               .body_bytes_max = std::numeric_limits<std::uint64_t>::max()}));
    TRY(http::Response head, client.open(method, url.target, {}, all));
    return Opened{std::move(client), std::move(head)};
  };
  auto answer = exchange();
  if (!answer && answer.error().code == ErrorCode::io)
    return failure(ErrorCode::unavailable, "no answer from {}: {}", url.host, answer.error().message);
  return answer;
}

Result<Opened> Hub::get(http::Url url, const http::Headers& headers) const {
  for (int redirects = 0;; ++redirects) {
    TRY(Opened answer, ask("GET", url, headers));
    if (!is_redirect(answer.head.status) || redirects == kRedirectsMax) return answer;
    TRY(http::Url next, redirected(url, answer.head.headers.find("Location").value_or("")));
    if (url.tls && !next.tls)
      return invalid("", "{} redirects to {}, which is not encrypted", url.host, next.host);
    url = std::move(next);
  }
}

std::unexpected<Error> Hub::refused(std::string_view what, const http::Response& response,
                                    Backoff& backoff) const {
  const int status = response.status;
  const std::string code(response.headers.find("X-Error-Code").value_or(""));
  const std::string page =
      fmt::format("{}://{}/{}", endpoint_.tls ? "https" : "http",
                  http::host_header(endpoint_.host, endpoint_.port, endpoint_.tls), repo_);
  const auto no = [](ErrorCode kind, std::string message) {
    return std::unexpected(Error{kind, std::move(message), "model"});
  };
  if (code == "RevisionNotFound")
    return no(ErrorCode::not_found, fmt::format("there is no revision {}", what));
  if (code == "EntryNotFound") return no(ErrorCode::not_found, fmt::format("there is no {}", what));
  if (status == 401 || status == 403 || code == "GatedRepo")
    return no(
        ErrorCode::invalid_argument,
        fmt::format("{} is gated or private, or does not exist: {} answers {}. See {}, accept its licence if "
                    "it has one, and {}",
                    repo_, endpoint_.host, status, page,
                    token_.empty() ? "set HF_TOKEN to your token" : "check that HF_TOKEN gives access"));
  if (status == 404) return no(ErrorCode::not_found, fmt::format("there is no {} at {}", what, page));

  const std::string said = printable(response.headers.find("X-Error-Message").value_or(""));
  const std::string message = fmt::format("{}: {} answers {} {}{}{}", what, endpoint_.host, status,
                                          http::reason_phrase(status), said.empty() ? "" : ": ", said);
  const bool may_pass = status == 408 || status == 416 || status == 429 || status >= 500;
  if (!may_pass) return no(ErrorCode::invalid_argument, message);
  if (const auto seconds = number(response.headers.find("Retry-After")))
    backoff.at_least(std::chrono::seconds(std::min<std::uint64_t>(*seconds, 3600)));
  return no(ErrorCode::unavailable, message);
}

Result<Listing> Hub::list(const std::string& revision, Backoff& backoff) const {
  http::Url url = endpoint_;
  url.target += fmt::format("/api/models/{}/revision/{}", repo_, segment(revision));
  TRY(Opened answer, get(url, {}));
  if (answer.head.status != 200) return refused(fmt::format("{}@{}", repo_, revision), answer.head, backoff);
  std::string body;
  for (;;) {
    const auto piece = answer.client.read();
    if (!piece) return failure(ErrorCode::unavailable, "{}: {}", endpoint_.host, piece.error().message);
    if (!*piece) return parse_listing(body);
    body += **piece;
    if (body.size() > kListingBytesMax)
      return invalid("model", "the list of the files of {} is longer than {} bytes", repo_, kListingBytesMax);
  }
}

Result<BlobInfo> Hub::info(const std::string& commit, const std::string& file, Backoff& backoff) const {
  http::Url url = file_url(commit, file);
  for (int redirects = 0;; ++redirects) {
    TRY(const Opened answer, ask("HEAD", url, {}));
    const http::Headers& headers = answer.head.headers;
    const bool elsewhere = is_redirect(answer.head.status);
    if (answer.head.status >= 300 && !elsewhere)
      return refused(fmt::format("{} in {}", file, repo_), answer.head, backoff);
    // Only the hub itself sends these headers for files that it stores elsewhere, so it follows only
    // redirections within the hub.
    const auto linked_etag = headers.find("X-Linked-Etag");
    const auto linked_size = number(headers.find("X-Linked-Size"));
    if (elsewhere && !(linked_etag && linked_size) && redirects < kRedirectsMax) {
      TRY(const http::Url next, redirected(url, headers.find("Location").value_or("")));
      if (same_origin(next, endpoint_)) {
        url = next;
        continue;
      }
    }
    const auto etag = plain_etag(linked_etag ? *linked_etag : headers.find("ETag").value_or(""));
    const auto size = linked_size || elsewhere ? linked_size : number(headers.find("Content-Length"));
    if (!etag || !size)
      return field_failure("model", ErrorCode::corrupt, "{} does not say the {} of {}", endpoint_.host,
                           etag ? "size" : "etag", file);
    if (*size > kFileBytesMax)
      return field_failure("model", ErrorCode::corrupt, "{} has {} bytes, the limit is {}", file, *size,
                           kFileBytesMax);
    return BlobInfo{file, *etag, *size};
  }
}

Result<Opened> Hub::open(const std::string& commit, const std::string& file, std::uint64_t offset,
                         Backoff& backoff) const {
  http::Headers headers;
  if (offset > 0) headers.add("Range", fmt::format("bytes={}-", offset));
  TRY(Opened answer, get(file_url(commit, file), headers));
  if (answer.head.status != 200 && answer.head.status != 206)
    return refused(fmt::format("{} in {}", file, repo_), answer.head, backoff);
  const std::string range(answer.head.headers.find("Content-Range").value_or(""));
  if (answer.head.status == 206 && !range.starts_with(fmt::format("bytes {}-", offset)))
    return failure(ErrorCode::unavailable, "{}: the server sent other bytes than requested: {}", file,
                   printable(range));
  return answer;
}

}  // namespace octavo::hub
