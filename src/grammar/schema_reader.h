// Reads a JSON Schema by type: distributes combinators and follows references, so that a schema becomes a
// list of alternatives (Facts), each a plain conjunction.
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
    keyword_holds,   // a keyword that leaves a choice, or part `index` of it
    keyword_fails,   // `keyword` of the schema does not hold (for keywords with several parts: part `index`)
    lacks_property,  // an object without the property `keyword`
    has_property,    // anything but an object without it
  };
  const Json* schema;
  Kind kind = Kind::holds;
  std::string_view keyword = {};
  std::size_t index = 0;
  // Compares positions in the document, not addresses: goals are in the order of an object's members.
  auto operator<=>(const Goal& other) const {
    return std::tie(schema->offset, kind, keyword, index) <=>
           std::tie(other.schema->offset, other.kind, other.keyword, other.index);
  }
  bool operator==(const Goal& other) const { return (*this <=> other) == 0; }
};
using Goals = std::vector<Goal>;  // all of them; sorted and unique as a key

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

struct Facts {
  const Json* about = nullptr;  // the first schema that says something itself, for error messages
  std::vector<std::pair<std::string_view, const Json*>>
      said;                     // keywords and their schemas, for error messages
  unsigned types = kAnyType;    // distinguishes integers from other numbers

  std::optional<std::vector<const Json*>> values;  // enum and const: one of these
  std::vector<const Json*> excluded;               // none of these

  NumberLimits number;

  struct Pattern {
    const Json* schema;  // its `pattern`
    bool negated;
  };
  std::uint32_t length_min = 0, length_max = UINT32_MAX;  // in code points
  std::vector<Pattern> patterns;
  std::vector<std::string_view> formats;

  std::vector<const Json*> arrays;  // schemas with prefixItems or items
  std::uint32_t items_min = 0, items_max = UINT32_MAX;
  // `contains`: from min to max of the items satisfy the goal.
  struct Contained {
    Goal goal;
    std::uint32_t min = 1, max = UINT32_MAX;
  };
  std::vector<Contained> contains;
  const Json* unique_items = nullptr;  // a schema that asked for it

  std::vector<const Json*> objects;  // schemas with properties, patternProperties or additionalProperties
  std::vector<std::string_view> required, forbidden;
  std::vector<std::pair<std::string_view, Goal>> properties;  // further goals of single properties
  std::vector<const Json*> property_names;
  std::uint32_t properties_min = 0, properties_max = UINT32_MAX;

  // The schemas that have unevaluatedProperties and unevaluatedItems. The reader moves them to `objects` and
  // `arrays`.
  const Json* unevaluated_properties = nullptr;
  const Json* unevaluated_items = nullptr;

  // The last schema with the keyword, for error messages.
  const Json* says(std::string_view keyword) const {
    const auto it =
        std::find_if(said.rbegin(), said.rend(), [&](const auto& entry) { return entry.first == keyword; });
    return it == said.rend() ? about : it->second;
  }
};

class SchemaReader {
 public:
  // The document must outlive the reader. refuse_unknown: keywords and formats that are not known are errors,
  // not annotations.
  SchemaReader(const Json& document, std::string_view field, bool refuse_unknown);

  // The alternatives; a value must satisfy one of them. Empty: no value is valid.
  Result<std::vector<Facts>> read(const Goals& goals);

  // Conditions on the item at this index, and on the value of this property.
  Goals item_goals(const Facts& facts, std::size_t index) const;
  Result<Goals> property_goals(const Facts& facts, std::string_view name);
  // The number of items with a separate schema.
  std::size_t prefix_size(const Facts& facts) const;

  // The contents (not their spelling) that a `pattern`, or a key of patternProperties, matches.
  Result<const Automaton*> pattern(std::string_view pattern, const Json* schema, std::string_view keyword);
  // The contents that satisfy all conditions on strings except their length; nullptr without conditions.
  Result<const Automaton*> contents(const Facts& facts);
  // Contents with these lengths; nullopt: the schema only limits lengths.
  Result<std::optional<Automaton>> contents_of_length(const Facts& facts);
  // The error where they are too many.
  std::unexpected<Error> too_many_lengths(const Facts& facts) const;
  // The only pattern (or that of the only format), where nothing else but lengths is said.
  std::optional<std::string> only_pattern(const Facts& facts) const;

  // Whether a value satisfies the facts.
  Result<bool> satisfies(const Json& value, const Facts& facts);
  Result<bool> satisfies(const Json& value, const Goals& goals);

  // The first schema of the document with the same text, ignoring annotations.
  const Json* first_like(const Json* schema);

  // Counts steps (of about a tenth of a microsecond) against the budget of the whole schema, kSchemaWorkMax;
  // the error names the keyword at which it ran out.
  Result<void> work(std::size_t steps, const Json* schema, std::string_view keyword);

  // The error of a keyword that is not enforced, and of one that says something meaningless.
  template <class... Args>
  std::unexpected<Error> refuse(const Json* schema, std::string_view keyword,
                                fmt::format_string<Args...> text, Args&&... args) const {
    const std::string what = keyword.empty() ? "" : fmt::format("'{}' ", keyword);
    return invalid(field_, "JSON Schema: {}at {}: {}", what, path(schema, keyword),
                   fmt::format(text, std::forward<Args>(args)...));
  }

  // Why no value satisfies the goals.
  Result<Error> explain(const Goals& goals);

  static bool is_false(const Goals& goals);
  // The JSON pointer of a keyword of a schema of this document.
  std::string path(const Json* schema, std::string_view keyword) const;

 private:
  friend class FactsBuilder;

  Result<const Json*> resolve(const Json* schema, std::string_view keyword);
  // Whether the keyword of this schema says something of values, in this dialect and beside the others.
  bool counts(const Json& schema, std::string_view keyword) const;
  // Refuses malformed keywords, and references that lead back to themselves without descending into the
  // value.
  Result<void> check(const Json* schema);
  Result<void> check_loops(const Json* schema);
  // A keyword or format that is not known: an error, or a line in the log.
  Result<void> unknown(const Json* schema, std::string_view what, std::string_view name) const;
  Result<Error> contradiction(const Facts& facts);
  std::optional<Error> crossed(const Facts& facts, std::string_view thing) const;
  Result<Error> no_listed_value(const Facts& facts) const;
  Result<std::optional<Error>> missing_member(const Facts& facts);
  Result<bool> disjoint(const Facts& a, const Facts& b, int depth);
  Result<bool> disjoint(const Goals& a, const Goals& b, int depth);
  const Json* member(const Json& object, std::string_view name);
  // A schema that is not in the document; the same for the same text.
  const Json* made(Json schema);

  const Json& document_;
  const std::string field_;
  const Dialect dialect_;
  const bool refuse_unknown_;
  const References references_;
  std::set<const Json*> checked_, loop_free_;
  std::map<std::string, std::unique_ptr<const Automaton>, std::less<>> patterns_;
  std::unordered_map<std::string, std::unique_ptr<const Automaton>> contents_;
  // Generated schemas for unevaluatedProperties and unevaluatedItems, by their text, so that a recursive one
  // exists once.
  std::map<std::string, Json> made_;
  static constexpr std::size_t kMadeOffset = SIZE_MAX / 2;  // their offsets begin here
  bool narrowed_ = false;  // some facts omit values: conclude nothing from what they exclude
  std::unordered_map<const Json*, std::unordered_map<std::string_view, const Json*>> members_;
  std::unordered_map<const Json*, const Json*> like_;      // first_like, as far as it is known
  std::unordered_map<std::string, const Json*> first_of_;  // by its text
  std::size_t steps_ = 0;                                  // taken so far
  int depth_ = 0;                                          // of read() within read()
};

// A further schema that must hold; `true` says nothing.
void add_goal(Goals& goals, const Json& schema);

bool equal(const Json& a, const Json& b);

}  // namespace octavo::grammar
