// Reads a JSON Schema by type. Distributes combinators and follows references. The result is a list of
// alternatives (Facts), each of which is a plain conjunction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/json_number.h"
#include "grammar/json_value.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_references.h"
#include "grammar/text_length.h"

namespace octavo::grammar {

// A condition on a value.
struct Goal {
  enum class Kind : std::uint8_t {
    holds,
    fails,
    keyword_holds,   // a keyword with a choice holds, or its part `index`
    keyword_fails,   // `keyword` of the schema does not hold, or its part `index`
    lacks_property,  // the value is not an object, or has no property `keyword`
    has_property,    // the value is an object with the property `keyword`
  };
  const Json* schema;
  Kind kind = Kind::holds;
  std::string_view keyword = {};
  std::size_t index = 0;
  // Compares positions in the document, not addresses, so that goals have the document's order.
  auto operator<=>(const Goal& other) const {
    return std::tie(schema->offset, kind, keyword, index) <=>
           std::tie(other.schema->offset, other.kind, other.keyword, other.index);
  }
  bool operator==(const Goal& other) const { return (*this <=> other) == 0; }
};
using Goals = std::vector<Goal>;  // all goals must hold; sorted and unique if used as a key

enum TypeBit : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFraction = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = 127
};

struct CountRange {
  std::uint32_t min = 0, max = UINT32_MAX;
};

struct Facts {
  const Json* about = nullptr;  // first schema that contributes facts, for error messages
  std::vector<std::pair<std::string_view, const Json*>>
      said;                   // keywords with their schemas, for error messages
  unsigned types = kAnyType;  // set of types; integers are separate from other numbers

  std::optional<std::vector<const Json*>> values;  // values that enum and const allow
  std::vector<const Json*> excluded;               // forbidden values

  NumberLimits number;

  struct Pattern {
    const Json* schema;  // the schema with this `pattern`
    bool negated;
  };
  LengthRange length;
  std::vector<Pattern> patterns;
  std::vector<std::string_view> formats;

  std::vector<const Json*> arrays;  // schemas with prefixItems or items
  CountRange item_count;
  // From `contains`: `min` to `max` items satisfy the goal.
  struct Contained {
    Goal goal;
    std::uint32_t min = 1, max = UINT32_MAX;
  };
  std::vector<Contained> contains;
  const Json* unique_items = nullptr;  // a schema that requires unique items

  std::vector<const Json*> objects;  // schemas with properties, patternProperties or additionalProperties
  std::vector<std::string_view> required, forbidden;
  std::vector<std::pair<std::string_view, Goal>> properties;  // further goals of single properties
  std::vector<const Json*> property_names;
  CountRange property_count;

  // Schemas with unevaluatedProperties and unevaluatedItems. The reader moves them to `objects` and
  // `arrays`.
  struct Unevaluated {
    const Json* properties = nullptr;
    const Json* items = nullptr;
  };
  Unevaluated unevaluated;

  // Returns the last schema with this keyword, for error messages.
  const Json* says(std::string_view keyword) const {
    const auto it =
        std::find_if(said.rbegin(), said.rend(), [&](const auto& entry) { return entry.first == keyword; });
    return it == said.rend() ? about : it->second;
  }
};

class SchemaReader {
 public:
  // The document must outlive the reader. refuse_unknown: unknown keywords and formats are errors, not
  // annotations.
  SchemaReader(const Json& document, std::string_view field, bool refuse_unknown);

  // Returns the alternatives: a value must satisfy one of them. An empty list means that no value is valid.
  Result<std::vector<Facts>> read(const Goals& goals);

  // Returns the goals for the item at this index, or for the value of this property.
  Goals item_goals(const Facts& facts, std::size_t index) const;
  Result<Goals> property_goals(const Facts& facts, std::string_view name);
  // Returns the number of items with separate schemas.
  std::size_t prefix_size(const Facts& facts) const;

  // Returns the contents (unescaped) that a pattern matches. The pattern is the value of `pattern`, or a
  // key of patternProperties.
  Result<const Automaton*> pattern(std::string_view pattern, const Json* schema, std::string_view keyword);
  // Returns the contents that satisfy all conditions on strings except their length; null without
  // conditions.
  Result<const Automaton*> contents(const Facts& facts);
  // Returns the contents with the allowed lengths, or nullopt if the schema limits only the length.
  Result<std::optional<Automaton>> contents_of_length(const Facts& facts);
  // Returns the error if contents_of_length() needs too many states.
  std::unexpected<Error> too_many_lengths(const Facts& facts) const;
  // Returns the only pattern (or that of the only format) if the schema has no other conditions on strings
  // except lengths.
  std::optional<std::string> only_pattern(const Facts& facts) const;

  Result<bool> satisfies(const Json& value, const Facts& facts);
  Result<bool> satisfies(const Json& value, const Goals& goals);

  // Returns the first schema in the document that is equal except for annotations.
  const Json* first_like(const Json* schema);

  // Counts steps (about 0.1 us each) against kSchemaWorkMax, the limit for a whole schema. Errors: the
  // limit is exceeded, with the keyword at which this happened.
  Result<void> work(std::size_t steps, const Json* schema, std::string_view keyword);

  // Returns the error for a keyword that cannot be enforced, or for a meaningless one.
  template <class... Args>
  std::unexpected<Error> refuse(const Json* schema, std::string_view keyword,
                                fmt::format_string<Args...> text, Args&&... args) const {
    const std::string what = keyword.empty() ? "" : fmt::format("'{}' ", keyword);
    return invalid(field_, "JSON Schema: {}at {}: {}", what, path(schema, keyword),
                   fmt::format(text, std::forward<Args>(args)...));
  }

  // Returns the reason why no value satisfies the goals.
  Result<Error> explain(const Goals& goals);

  static bool is_false(const Goals& goals);
  // Returns the JSON pointer to a keyword of a schema in the document.
  std::string path(const Json* schema, std::string_view keyword) const;

 private:
  friend class FactsBuilder;

  Result<const Json*> resolve(const Json* schema, std::string_view keyword);
  // Returns whether the keyword constrains values, in this dialect and together with the schema's other
  // keywords.
  bool counts(const Json& schema, std::string_view keyword) const;
  // Refuses malformed keywords, and references that lead to themselves without a step into the value.
  Result<void> check(const Json* schema);
  Result<void> check_loops(const Json* schema);
  // Handles an unknown keyword or format: returns an error, or logs it.
  Result<void> check_names(const Json* schema, std::string_view keyword, const Json& value) const;
  Result<void> unknown(const Json* schema, std::string_view what, std::string_view name) const;
  Result<Error> contradiction(const Facts& facts);
  std::optional<Error> crossed(const Facts& facts, std::string_view thing) const;
  Result<Error> no_listed_value(const Facts& facts) const;
  Result<std::optional<Error>> missing_member(const Facts& facts);
  Result<bool> disjoint(const Facts& a, const Facts& b, int depth);
  Result<bool> disjoint(const Goals& a, const Goals& b, int depth);
  const Json* member(const Json& object, std::string_view name);
  // Adds a schema that is not in the document. Equal texts give the same schema.
  const Json* made(Json schema);

  const Json& document_;
  const std::string field_;
  const Dialect dialect_;
  const bool refuse_unknown_;
  const References references_;
  std::set<const Json*> checked_, loop_free_;
  std::map<std::string, std::unique_ptr<const Automaton>, std::less<>> patterns_;
  std::unordered_map<std::string, std::unique_ptr<const Automaton>> contents_;
  // Generated schemas for unevaluatedProperties and unevaluatedItems, by text. A recursive schema is thus
  // generated only once.
  std::map<std::string, Json> made_;
  static constexpr std::size_t kMadeOffset = SIZE_MAX / 2;  // offset of generated schemas
  bool narrowed_ = false;  // some facts omit valid values, so nothing follows from the values that they
                           // exclude
  std::unordered_map<const Json*, std::unordered_map<std::string_view, const Json*>> members_;
  std::unordered_map<const Json*, const Json*> like_;      // known results of first_like()
  std::unordered_map<std::string, const Json*> first_of_;  // first schema with each text
  std::size_t steps_ = 0;                                  // number of steps so far
  int depth_ = 0;                                          // depth of nested calls of read()
};

// Adds a schema that must hold. `true` adds nothing.
void add_goal(Goals& goals, const Json& schema);

bool equal(const Json& a, const Json& b);

}  // namespace octavo::grammar
