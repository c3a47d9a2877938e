// Resolves `$ref` in a schema document: JSON pointers, anchors, and `$id` of subschemas.
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
  References(const Json& document, Dialect dialect);

  // Returns the schema that `keyword` ($ref, $dynamicRef or $recursiveRef) refers to, or an error. A
  // dynamic reference must have a single possible target in the document.
  std::expected<const Json*, std::string> target(const Json& schema, std::string_view keyword) const;

 private:
  void index(const Json& schema, const std::string& base);
  // Returns the error for a reference without a target. It suggests the reference that was probably meant.
  std::string points_nowhere(std::string_view reference) const;

  const Json& document_;
  const Dialect dialect_;
  // schemas by URI; "" is the document if it has no $id
  std::map<std::string, const Json*, std::less<>> resources_;
  std::map<std::string, const Json*, std::less<>> anchors_;               // schemas by "URI#name"
  std::multimap<std::string, const Json*, std::less<>> dynamic_anchors_;  // schemas by the name of their
                                                                          // $dynamicAnchor
  int recursive_anchors_ = 0;
  // Base URI of each schema that contains a reference, by Json::offset, which copies of a schema keep.
  std::unordered_map<std::size_t, const std::string*> base_of_;
};

// Implements RFC 3986, section 5.2, for the forms that occur in schemas.
std::string resolved_uri(std::string_view base, std::string_view reference);

}  // namespace octavo::grammar
