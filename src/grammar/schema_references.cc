#include "grammar/schema_references.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "grammar/json_pointer.h"

namespace octavo::grammar {

namespace {

std::string_view text_of(const Json& schema, std::string_view keyword) {
  const Json* value = schema.find(keyword);
  return value && value->is(Json::Kind::string) ? std::string_view(value->text) : "";
}

// Returns true if the value of the keyword is data, so that nothing in it is a schema.
bool holds_data(std::string_view keyword) {
  return keyword == "enum" || keyword == "const" || keyword == "default" || keyword == "examples" ||
         keyword == "example";
}
bool holds_named(std::string_view keyword) {
  return keyword == "properties" || keyword == "patternProperties" || keyword == "$defs" ||
         keyword == "definitions" || keyword == "dependentSchemas" || keyword == "dependencies";
}

// Returns the offset of the path in a URI.
std::size_t path_begin(std::string_view uri) {
  const auto colon = uri.find(':');
  std::size_t at = colon != std::string_view::npos && colon < uri.find('/') ? colon + 1 : 0;
  if (uri.substr(at).starts_with("//")) at = std::min(uri.find('/', at + 2), uri.size());
  return at;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> parts;
  bool directory = false;
  const bool rooted = path.starts_with('/');
  while (!path.empty()) {
    const auto slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path = slash == std::string_view::npos ? "" : path.substr(slash + 1);
    directory = part == "." || part == ".." || (part.empty() && path.empty()) ||
                (slash != std::string_view::npos && path.empty());
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (part != ".." && part != "." && !part.empty()) parts.push_back(part);
  }
  return fmt::format("{}{}{}", rooted ? "/" : "", fmt::join(parts, "/"),
                     directory && !parts.empty() ? "/" : "");
}

}  // namespace

std::string resolved_uri(std::string_view base, std::string_view reference) {
  if (reference.empty()) return std::string(base);
  const auto colon = reference.find(':');
  if (colon != std::string_view::npos && colon > 0 && colon < reference.find_first_of("/?#"))
    return std::string(reference);
  const std::size_t path = path_begin(base);
  if (reference.starts_with("//")) return fmt::format("{}{}", base.substr(0, base.find("//")), reference);
  if (reference.starts_with('/')) return fmt::format("{}{}", base.substr(0, path), without_dots(reference));
  const std::size_t last = base.rfind('/') + 1;  // 0: no slash
  const std::string_view directory = last > path ? base.substr(path, last - path) : path > 0 ? "/" : "";
  return fmt::format("{}{}", base.substr(0, path), without_dots(fmt::format("{}{}", directory, reference)));
}

References::References(const Json& document, Dialect dialect) : document_(document), dialect_(dialect) {
  const auto& [base, root] = *resources_.emplace("", &document).first;
  index(document, base);
}

void References::index(const Json& schema, const std::string& base) {
  const std::string* own = &base;
  const bool refers = !text_of(schema, "$ref").empty();
  // Up to draft-07, all keywords beside `$ref` are ignored, including the id.
  if (const std::string_view id = text_of(schema, dialect_ == Dialect::draft4 ? "id" : "$id");
      !id.empty() && !(refers && dialect_ <= Dialect::draft7)) {
    const auto hash = std::min(id.find('#'), id.size());
    const std::string_view name = id.substr(std::min(hash + 1, id.size()));
    if (hash > 0) own = &resources_.emplace(resolved_uri(base, id.substr(0, hash)), &schema).first->first;
    if (!name.empty()) anchors_.emplace(fmt::format("{}#{}", *own, name), &schema);
  }
  if (const std::string_view name = text_of(schema, "$anchor"); !name.empty())
    anchors_.emplace(fmt::format("{}#{}", *own, name), &schema);
  if (const std::string_view name = text_of(schema, "$dynamicAnchor"); !name.empty()) {
    anchors_.emplace(fmt::format("{}#{}", *own, name), &schema);
    dynamic_anchors_.emplace(name, &schema);
  }
  if (const Json* yes = schema.find("$recursiveAnchor"); yes && yes->boolean) ++recursive_anchors_;
  if (refers || schema.find("$dynamicRef") || schema.find("$recursiveRef"))
    base_of_.emplace(schema.offset, own);
  for (const Json& item : schema.items) index(item, *own);
  for (const auto& [keyword, value] : schema.members) {
    if (holds_data(keyword)) continue;
    if (!holds_named(keyword)) {
      index(value, *own);
      continue;
    }
    for (const auto& member : value.members) index(member.second, *own);
  }
}

std::string References::points_nowhere(std::string_view reference) const {
  const std::string_view name = reference.substr(reference.rfind('/'));
  for (const std::string_view folder : {"/$defs", "/definitions"})
    if (const std::string pointer = fmt::format("{}{}", folder, name); at_pointer(document_, pointer))
      return fmt::format("'{}' points nowhere; did you mean '#{}'?", reference, pointer);
  return fmt::format("'{}' points nowhere; add the schema there, or correct the reference", reference);
}

std::expected<const Json*, std::string> References::target(const Json& schema,
                                                           std::string_view keyword) const {
  const Json* value = schema.find(keyword);
  if (!value->is(Json::Kind::string)) return std::unexpected("must be a string such as '#/$defs/name'");
  const std::string_view text = value->text;
  const auto base = base_of_.find(schema.offset);
  const auto hash = std::min(text.find('#'), text.size());
  const std::string uri = resolved_uri(base == base_of_.end() ? "" : *base->second, text.substr(0, hash));
  const auto resource = resources_.find(uri);
  if (resource == resources_.end())
    return std::unexpected(at_pointer(document_, text)
                               ? fmt::format("'{0}' is another document; write '#{0}'", text)
                               : fmt::format("'{}' is another document; copy its schema into '$defs'", text));
  const auto fragment = percent_decoded(text.substr(std::min(hash + 1, text.size())));
  if (!fragment) return std::unexpected(fmt::format("'{}' is malformed", text));
  const Json* found = resource->second;
  if (keyword == "$recursiveRef") {
    if (recursive_anchors_ > 1 && found->find("$recursiveAnchor"))
      return std::unexpected("several schemas have '$recursiveAnchor'; leave it in one of them");
    return found;
  }
  if (fragment->starts_with('/')) {
    found = at_pointer(*found, *fragment);
    // Each copy in a generated schema has an `$id`, but its JSON pointers still refer to the document.
    if (!found) found = at_pointer(document_, *fragment);
    if (!found) return std::unexpected(points_nowhere(text));
  } else if (!fragment->empty()) {
    const auto anchor = anchors_.find(fmt::format("{}#{}", uri, *fragment));
    if (anchor == anchors_.end())
      return std::unexpected(
          fmt::format("'{}' is not defined in this schema; add it, or correct the reference", text));
    found = anchor->second;
    if (keyword == "$dynamicRef" && text_of(*found, "$dynamicAnchor") == *fragment &&
        dynamic_anchors_.count(*fragment) > 1)
      return std::unexpected(
          fmt::format("several schemas have the '$dynamicAnchor' '{}'; leave it in one of them", *fragment));
  }
  return found;
}

}  // namespace octavo::grammar
