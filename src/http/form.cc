#include "http/form.h"

#include <algorithm>

#include "http/message.h"

namespace octavo::http {
namespace {

constexpr std::size_t kBoundaryMax = 70;  // limit of RFC 2046
constexpr std::size_t kHeadMax = 8 << 10;

// The value may be in quotes, in which \ escapes a quote.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  for (std::size_t at = header.find(';'); at != std::string_view::npos;) {
    const std::size_t key = header.find_first_not_of(" \t", at + 1);
    const std::size_t equals = key == std::string_view::npos ? key : header.find('=', key);
    if (equals == std::string_view::npos) return std::nullopt;
    std::string value;
    std::size_t end = equals + 1;
    if (end < header.size() && header[end] == '"') {
      for (++end; end < header.size() && header[end] != '"'; ++end) {
        if (header[end] == '\\' && end + 1 < header.size()) ++end;
        value += header[end];
      }
    } else {
      end = std::min(header.find(';', end), header.size());
      value = header.substr(equals + 1, end - equals - 1);
      value.erase(value.find_last_not_of(" \t") + 1);
    }
    if (equal_ignoring_case(header.substr(key, equals - key), name)) return value;
    at = header.find(';', end);
  }
  return std::nullopt;
}

// Returns false if the part has no name.
bool read_head(std::string_view head, FormPart& part) {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !equal_ignoring_case(line.substr(0, colon), "Content-Disposition"))
      continue;
    part.name = parameter(line, "name").value_or("");
    part.filename = parameter(line, "filename");
  }
  return !part.name.empty();
}

Error broken(std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("the form is malformed: {}", why), ""};
}

}  // namespace

Result<std::vector<FormPart>> parse_form(std::string_view content_type, std::string_view body) {
  if (!equal_ignoring_case(content_type.substr(0, content_type.find(';')), "multipart/form-data"))
    return failure(ErrorCode::invalid_argument, "the body must be multipart/form-data");
  const std::string boundary = parameter(content_type, "boundary").value_or("");
  if (boundary.empty() || boundary.size() > kBoundaryMax)
    return std::unexpected(broken("the Content-Type needs a boundary of 1 to 70 characters"));
  const std::string opening = "--" + boundary, separator = "\r\n" + opening;

  // Text before the first boundary is ignored.
  std::size_t at = body.starts_with(opening) ? opening.size() : body.find(separator);
  if (at == std::string_view::npos) return std::unexpected(broken("the body does not contain the boundary"));
  if (!body.starts_with(opening)) at += separator.size();
  std::vector<FormPart> parts;
  for (;;) {
    std::string_view rest = body.substr(at);
    if (rest.starts_with("--")) return parts;
    if (parts.size() == kFormPartsMax) return std::unexpected(broken("the form has more than 128 parts"));
    const std::size_t line = rest.find_first_not_of(" \t");
    if (line == std::string_view::npos || !rest.substr(line).starts_with("\r\n"))
      return std::unexpected(broken("a boundary is not on a separate line"));
    // Skips the spaces after the boundary. An empty line follows the header of the part.
    rest.remove_prefix(line);
    const std::size_t head = rest.substr(0, kHeadMax).find("\r\n\r\n");
    if (head == std::string_view::npos) return std::unexpected(broken("the header of a part does not end"));
    FormPart& part = parts.emplace_back();
    if (!read_head(rest.substr(2, head < 2 ? 0 : head - 2), part))
      return std::unexpected(broken("a part has no name"));
    rest.remove_prefix(head + 4);
    const std::size_t end = rest.find(separator);
    if (end == std::string_view::npos) return std::unexpected(broken("the form ends early"));
    part.data = rest.substr(0, end);
    at = static_cast<std::size_t>(part.data.data() - body.data()) + end + separator.size();
  }
}

}  // namespace octavo::http
