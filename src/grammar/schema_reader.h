// Reads a JSON Schema: expands combinators (anyOf, not, ...) and follows references. The result is a list of
// alternatives. Each alternative (Facts) is a plain conjunction, from which SchemaWriter writes a grammar.
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

// A condition on one value.
struct Goal {
  enum class Kind : std::uint8_t {
    holds,
    fails,
    // `keyword` of the schema holds, or only element `index` of its value
    keyword_holds,
    // `keyword` of the schema does not hold, or only element `index` of its value
    keyword_fails,
    // the value is not an object or has no property named `keyword`
    lacks_property,
    // the value is an object with a property named `keyword`
    has_property,
  };
  const Json* schema;
  Kind kind = Kind::holds;
  std::string_view keyword = {};
  std::size_t index = 0;
  // Compares offsets in the document and not addresses, so that the order is the same in every run.
  auto operator<=>(const Goal& other) const {
    return std::tie(schema->offset, kind, keyword, index) <=>
           std::tie(other.schema->offset, other.kind, other.keyword, other.index);
  }
  bool operator==(const Goal& other) const { return (*this <=> other) == 0; }
};
// Conjunction of goals. Sorted and without duplicates if it is the key of a map.
using Goals = std::vector<Goal>;

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
  // first schema that contributes facts, for error messages
  const Json* about = nullptr;
  std::vector<std::pair<std::string_view, const Json*>>
      // each keyword that was read, and the schema that contains it, for error messages
      stated;
  // allowed types, as bits of TypeBit
  unsigned types = kAnyType;

  std::optional<std::vector<const Json*>> values;
  std::vector<const Json*> excluded;

  NumberLimits number;

  struct Pattern {
    const Json* schema;
    bool negated;
  };
  LengthRange length;
  std::vector<Pattern> patterns;
  std::vector<std::string_view> formats;

  std::vector<const Json*> arrays;
  CountRange item_count;
  // At least `min` and at most `max` items satisfy the goal.
  struct Contained {
    Goal goal;
    std::uint32_t min = 1, max = UINT32_MAX;
  };
  std::vector<Contained> contains;
  const Json* unique_items = nullptr;

  // schemas with properties, patternProperties or additionalProperties
  std::vector<const Json*> objects;
  std::vector<std::string_view> required, forbidden;
  std::vector<std::pair<std::string_view, Goal>> properties;
  std::vector<const Json*> property_names;
  CountRange property_count;

  // Schemas with unevaluatedProperties and unevaluatedItems, which the reader resolves to `objects` and
  // `arrays`.
  struct Unevaluated {
    const Json* properties = nullptr;
    const Json* items = nullptr;
  };
  Unevaluated unevaluated;

  // Returns the last schema with the keyword, for error messages.
  const Json* schema_of(std::string_view keyword) const {
    const auto it = std::find_if(stated.rbegin(), stated.rend(),
                                 [&](const auto& entry) { return entry.first == keyword; });
    return it == stated.rend() ? about : it->second;
  }
};

class SchemaReader {
 public:
  // The document must outlive the reader. refuse_unknown: unknown keywords and formats are errors.
  SchemaReader(const Json& document, std::string_view field, bool refuse_unknown);

  // A valid value satisfies one of the alternatives. If the list is empty, no value is valid.
  Result<std::vector<Facts>> read(const Goals& goals);

  // Returns the goals for one item or for the value of one property.
  Goals item_goals(const Facts& facts, std::size_t index) const;
  Result<Goals> property_goals(const Facts& facts, std::string_view name);
  // Returns the number of items that have separate schemas (prefixItems).
  std::size_t prefix_size(const Facts& facts) const;

  // Returns an automaton for the string contents (unescaped) that a pattern matches. keyword: `pattern`, or
  // patternProperties if the pattern is one of its keys.
  Result<const Automaton*> pattern(std::string_view pattern, const Json* schema, std::string_view keyword);
  // Returns an automaton for the string contents that satisfy all conditions except the length; null if there
  // are no other conditions.
  Result<const Automaton*> contents(const Facts& facts);
  // Returns an automaton for the string contents that satisfy all conditions with the length, or nullopt if
  // the length is the only condition.
  Result<std::optional<Automaton>> contents_of_length(const Facts& facts);
  // Returns the error for the case that contents_of_length() has too many states.
  std::unexpected<Error> too_many_lengths(const Facts& facts) const;
  // If the only condition besides the length is one pattern or one format, returns this pattern, or the
  // format's pattern.
  std::optional<std::string> only_pattern(const Facts& facts) const;

  Result<bool> satisfies(const Json& value, const Facts& facts);
  Result<bool> satisfies(const Json& value, const Goals& goals);

  // Returns the first schema in the document that differs from this one at most in annotations.
  const Json* first_like(const Json* schema);

  // Counts steps of about 0.1 us. Returns an error at this keyword if the total exceeds kSchemaWorkMax.
  Result<void> work(std::size_t steps, const Json* schema, std::string_view keyword);

  // Returns an error for a keyword that has no meaning or that a grammar cannot enforce.
  template <class... Args>
  std::unexpected<Error> refuse(const Json* schema, std::string_view keyword,
                                fmt::format_string<Args...> text, Args&&... args) const {
    const std::string what = keyword.empty() ? "" : fmt::format("'{}' ", keyword);
    return invalid(field_, "JSON Schema: {}at {}: {}", what, path(schema, keyword),
                   fmt::format(text, std::forward<Args>(args)...));
  }

  // Returns an error that explains why no value satisfies the goals.
  Result<Error> explain(const Goals& goals);

  static bool is_false(const Goals& goals);
  std::string path(const Json* schema, std::string_view keyword) const;

 private:
  friend class FactsBuilder;

  Result<const Json*> resolve(const Json* schema, std::string_view keyword);
  // Returns true if the keyword constrains values in this draft and beside the schema's other keywords.
  bool counts(const Json& schema, std::string_view keyword) const;
  // check() returns an error if a keyword is malformed. check_loops() returns an error if the schema refers
  // to itself for the same value, so that no text would ever be read.
  Result<void> check(const Json* schema);
  Result<void> check_loops(const Json* schema);
  // Returns an error for an unknown keyword or format, or logs it.
  Result<void> check_names(const Json* schema, std::string_view keyword, const Json& value) const;
  Result<void> unknown(const Json* schema, std::string_view what, std::string_view name) const;
  Result<Error> contradiction(const Facts& facts);
  std::optional<Error> crossed(const Facts& facts, std::string_view thing) const;
  Result<Error> no_listed_value(const Facts& facts) const;
  Result<std::optional<Error>> missing_member(const Facts& facts);
  Result<bool> disjoint(const Facts& a, const Facts& b, int depth);
  Result<bool> disjoint(const Goals& a, const Goals& b, int depth);
  const Json* member(const Json& object, std::string_view name);
  // Adds a generated schema. Schemas with equal texts are added only once.
  const Json* made(Json schema);

  const Json& document_;
  const std::string field_;
  const Dialect dialect_;
  const bool refuse_unknown_;
  const References references_;
  std::set<const Json*> checked_, loop_free_;
  std::map<std::string, std::unique_ptr<const Automaton>, std::less<>> patterns_;
  std::unordered_map<std::string, std::unique_ptr<const Automaton>> contents_;
  // Generated schemas by text, for unevaluatedProperties and unevaluatedItems. Without this map, a recursive
  // schema would be generated again and again.
  std::map<std::string, Json> made_;
  static constexpr std::size_t kMadeOffset = SIZE_MAX / 2;  // offset of the first generated schema
  // true: some facts exclude values that are valid, so disjoint() must not use them
  bool narrowed_ = false;
  std::unordered_map<const Json*, std::unordered_map<std::string_view, const Json*>> members_;
  std::unordered_map<const Json*, const Json*> like_;  // cached results of first_like()
  // for each text, the first schema with this text
  std::unordered_map<std::string, const Json*> first_of_;
  std::size_t steps_ = 0;
  int depth_ = 0;  // number of nested read() calls
};

// Adds the goal that the schema holds, unless the schema is `true`.
void add_goal(Goals& goals, const Json& schema);

bool equal(const Json& a, const Json& b);

}  // namespace octavo::grammar
