// Resolves references in a schema document: JSON pointers, anchors, and the `$id` of its parts.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "grammar/json_value.h"
#include "grammar/schema_keywords.h"

namespace octavo::grammar {

class References {
 public:
  // The document must outlive this object.
  References(const Json& document, Dialect dialect);

  // Returns the schema to which `keyword` ($ref, $dynamicRef or $recursiveRef) refers, or the error. A
  // dynamic reference is resolved only if the document has a single possible target.
  std::expected<const Json*, std::string> target(const Json& schema, std::string_view keyword) const;

 private:
  void index(const Json& schema, const std::string& base);
  // Returns an error, with the reference that is probably meant.
  std::string points_nowhere(std::string_view reference) const;

  const Json& document_;
  const Dialect dialect_;
  // schemas by URI; "": the document, if it has no URI
  std::map<std::string, const Json*, std::less<>> resources_;
  std::map<std::string, const Json*, std::less<>> anchors_;               // schemas by URI#name
  std::multimap<std::string, const Json*, std::less<>> dynamic_anchors_;  // schemas by name
  int recursive_anchors_ = 0;
  // Base URIs of schemas with a reference, by their offset in the document. A copy of a schema has the same
  // offset.
  std::unordered_map<std::size_t, const std::string*> base_of_;
};

// Resolves a reference against its base (RFC 3986, section 5.2), for the forms that occur in schemas.
std::string resolved_uri(std::string_view base, std::string_view reference);

}  // namespace octavo::grammar
