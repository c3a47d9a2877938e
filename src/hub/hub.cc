#include "hub/hub.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <optional>
#include <utility>

#include "http/target.h"
#include "hub/model_name.h"

namespace octavo::hub {
namespace {

constexpr std::size_t kListingBytesMax = 64 << 20;
constexpr std::size_t kFilesMax = 100'000;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 44;

// Returns the etag without W/ and quotes, or nullopt if it cannot be a file name.
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

// Returns true if the path stays inside its folder.
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

// Encodes slashes, too, because branch names may contain them.
std::string segment(const std::string& text) {
  std::string out;
  for (const char c : http::percent_encoded(text)) c == '/' ? out += "%2F" : out += c;
  return out;
}

Result<Listing> parse_listing(const std::string& body) {
  const auto senseless = [](std::string_view why) {
    return failure(ErrorCode::unavailable, "the hub's list of files is invalid: {}", why);
  };
  boost::system::error_code wrong;
  const boost::json::value json = boost::json::parse(body, wrong);
  if (wrong || !json.is_object()) return senseless("the list is not a JSON object");
  const boost::json::value* sha = json.get_object().if_contains("sha");
  const boost::json::value* siblings = json.get_object().if_contains("siblings");
  if (sha == nullptr || !sha->is_string() || !is_commit(sha->get_string()))
    return senseless("the list has no commit");
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
    return invalid("HF_TOKEN", "must not contain spaces or control characters");
  std::string authorization = settings.token.empty() ? "" : "Bearer " + settings.token;
  return Hub(Origin(std::move(url), std::move(authorization)), std::move(repo));
}

http::Url Hub::file_url(const std::string& commit, const std::string& file) const {
  http::Url url = origin_.url();
  url.target += fmt::format("/{}/resolve/{}/{}", repo_, commit, http::percent_encoded(file));
  return url;
}

std::unexpected<Error> Hub::refused(std::string_view what, const http::Response& response,
                                    Backoff& backoff) const {
  const http::Url& endpoint = origin_.url();
  const int status = response.status;
  const std::string code(response.headers.find("X-Error-Code").value_or(""));
  const std::string page = fmt::format("{}://{}/{}", endpoint.tls ? "https" : "http",
                                       http::host_header(endpoint.host, endpoint.port, endpoint.tls), repo_);
  const auto no = [](ErrorCode kind, std::string message) {
    return std::unexpected(Error{kind, std::move(message), "model"});
  };
  if (code == "RevisionNotFound")
    return no(ErrorCode::not_found, fmt::format("the revision {} does not exist", what));
  if (code == "EntryNotFound") return no(ErrorCode::not_found, fmt::format("{} does not exist", what));
  if (status == 401 || status == 403 || code == "GatedRepo")
    return no(
        ErrorCode::invalid_argument,
        fmt::format("{} is gated or private, or does not exist: {} returned {}. Open {}, accept the licence "
                    "if the model has one, and {}",
                    repo_, endpoint.host, status, page,
                    origin_.anonymous() ? "set HF_TOKEN to your token" : "check that HF_TOKEN gives access"));
  if (status == 404) return no(ErrorCode::not_found, fmt::format("{} does not exist at {}", what, page));
  return unexpected_status(what, endpoint.host, response, backoff);
}

Result<Listing> Hub::list(const std::string& revision, Backoff& backoff) const {
  http::Url url = origin_.url();
  url.target += fmt::format("/api/models/{}/revision/{}", repo_, segment(revision));
  TRY(Opened answer, origin_.get(url, {}));
  if (answer.head.status != 200) return refused(fmt::format("{}@{}", repo_, revision), answer.head, backoff);
  TRY(const std::string body,
      read_text(answer, kListingBytesMax, fmt::format("the list of the files of {}", repo_)));
  return parse_listing(body);
}

Result<BlobInfo> Hub::info(const std::string& commit, const std::string& file, Backoff& backoff) const {
  http::Url url = file_url(commit, file);
  for (int redirects = 0;; ++redirects) {
    TRY(const Opened answer, origin_.request("HEAD", url, {}));
    const http::Headers& headers = answer.head.headers;
    const bool elsewhere = is_redirect(answer.head.status);
    if (answer.head.status >= 300 && !elsewhere)
      return refused(fmt::format("{} in {}", file, repo_), answer.head, backoff);
    // Redirections to other servers are not followed, because only the hub sends these headers.
    const auto linked_etag = headers.find("X-Linked-Etag");
    const auto linked_size = number(headers.find("X-Linked-Size"));
    if (elsewhere && !(linked_etag && linked_size) && redirects < kRedirectsMax) {
      TRY(const http::Url next, redirected(url, headers.find("Location").value_or("")));
      if (same_origin(next, origin_.url())) {
        url = next;
        continue;
      }
    }
    const auto etag = plain_etag(linked_etag ? *linked_etag : headers.find("ETag").value_or(""));
    const auto size = linked_size || elsewhere ? linked_size : number(headers.find("Content-Length"));
    if (!etag || !size)
      return field_failure("model", ErrorCode::corrupt, "{} does not report the {} of {}", origin_.url().host,
                           etag ? "size" : "etag", file);
    if (*size > kFileBytesMax)
      return field_failure("model", ErrorCode::corrupt, "{} has {} bytes, but the limit is {}", file, *size,
                           kFileBytesMax);
    return BlobInfo{file, *etag, *size};
  }
}

Result<Opened> Hub::open(const std::string& commit, const std::string& file, std::uint64_t offset,
                         Backoff& backoff) const {
  TRY(Opened answer, origin_.get(file_url(commit, file), range_from(offset)));
  if (answer.head.status != 200 && answer.head.status != 206)
    return refused(fmt::format("{} in {}", file, repo_), answer.head, backoff);
  return answer;
}

}  // namespace octavo::hub
