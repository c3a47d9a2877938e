// For tests: JSON Schemas, each with valid and invalid texts.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <vector>

#include "grammar/json_schema.h"
#include "grammar/test_compile.h"

namespace octavo::grammar::testing {

inline std::shared_ptr<const CompiledGrammar> compile(std::string_view schema,
                                                      const JsonOptions& options = {}) {
  return compiled(json_schema_grammar(schema, options), schema);
}

struct Case {
  std::string_view schema;
  std::vector<std::string_view> yes, no;
};

inline void check(std::span<const Case> cases, const JsonOptions& options = {}) {
  for (const Case& c : cases) {
    const auto grammar = compile(c.schema, options);
    ASSERT_TRUE(grammar);
    for (const auto text : c.yes) EXPECT_TRUE(accepts(grammar, text)) << c.schema << "\n  must take " << text;
    for (const auto text : c.no)
      EXPECT_FALSE(accepts(grammar, text)) << c.schema << "\n  must not take " << text;
  }
}

}  // namespace octavo::grammar::testing
