#include "hub/package_index.h"

#include "base/base64.h"
#include "http/target.h"

namespace octavo::hub {
namespace {

constexpr std::size_t kPageBytesMax = 16 << 20;

// Removes "user:password@" from the URL and returns the value of the Authorization header, or "".
std::string take_credentials(std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  const std::size_t at = url.substr(0, url.find_first_of("/?#", begin)).rfind('@');
  if (at == std::string::npos || at < begin) return {};
  const std::string encoded = url.substr(begin, at - begin);
  url.erase(begin, at + 1 - begin);
  return "Basic " + encode_base64(http::percent_decoded(encoded, false).value_or(encoded));
}

std::string without_entities(std::string_view attribute) {
  std::string text(attribute);
  for (std::size_t at = 0; (at = text.find("&amp;", at)) != std::string::npos; ++at) text.replace(at, 5, "&");
  return text;
}

}  // namespace

std::optional<std::string> link_to(std::string_view page, std::string_view file) {
  constexpr std::string_view kAttribute = "href=";
  for (std::size_t at = 0; (at = page.find(kAttribute, at)) != std::string_view::npos;) {
    at += kAttribute.size();
    const char quote = at < page.size() ? page[at] : '\0';
    const std::size_t end = page.find(quote, at + 1);
    if ((quote != '"' && quote != '\'') || end == std::string_view::npos) continue;
    std::string target = without_entities(page.substr(at + 1, end - at - 1));
    target.erase(std::min(target.find('#'), target.size()));
    const std::string_view path = std::string_view(target).substr(0, target.find('?'));
    if (http::percent_decoded(path.substr(path.rfind('/') + 1), false) == file) return target;
    at = end;
  }
  return std::nullopt;
}

Result<PackageIndex> PackageIndex::make(const std::string& url) {
  std::string plain = url;
  std::string authorization = take_credentials(plain);
  auto parsed = http::parse_url(plain);
  if (!parsed) parsed.error().field = "PIP_INDEX_URL";
  TRY(http::Url base, std::move(parsed));
  while (base.target.ends_with('/')) base.target.pop_back();
  return PackageIndex(Origin(std::move(base), std::move(authorization)));
}

Result<http::Url> PackageIndex::find(std::string_view project, std::string_view file) const {
  http::Url url = origin_.url();
  url.target += fmt::format("/{}/", project);
  TRY(Opened answer, origin_.get(url, {{"Accept", "text/html"}}));
  const int status = answer.head.status;
  if (status == 401 || status == 403)
    return invalid("PIP_INDEX_URL", "{} returned {}: {}", host(), status,
                   origin_.anonymous() ? "the index needs user:password@ before its host name"
                                       : "the index refused user and password");
  if (status == 404)
    return field_failure("PIP_INDEX_URL", ErrorCode::not_found, "{} does not have the package {}", host(),
                         project);
  Backoff unused;
  if (status != 200) return unexpected_status(project, host(), answer.head, unused);
  TRY(const std::string page,
      read_text(answer, kPageBytesMax, fmt::format("the index's page of {}", project)));
  const auto link = link_to(page, file);
  if (!link) return field_failure("PIP_INDEX_URL", ErrorCode::not_found, "{} does not have {}", host(), file);
  return redirected(answer.url, *link);
}

Result<Opened> PackageIndex::open(const http::Url& file, std::uint64_t offset, Backoff& backoff) const {
  TRY(Opened answer, origin_.get(file, range_from(offset)));
  if (answer.head.status != 200 && answer.head.status != 206)
    return unexpected_status(file.target, file.host, answer.head, backoff);
  return answer;
}

}  // namespace octavo::hub
