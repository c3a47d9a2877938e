#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "grammar/testing.h"

namespace octavo::grammar::testing {

// Compiles a grammar. After an error, the test fails and the result is null.
inline std::shared_ptr<const CompiledGrammar> compiled(
    Result<Grammar> grammar, std::string_view text,
    std::shared_ptr<const Vocabulary> vocabulary = byte_vocabulary()) {
  EXPECT_TRUE(grammar) << text << ": " << grammar.error().message;
  if (!grammar) return nullptr;
  auto compiled = CompiledGrammar::compile(*std::move(grammar), std::move(vocabulary));
  EXPECT_TRUE(compiled) << text << ": " << compiled.error().message;
  return compiled ? *compiled : nullptr;
}

}  // namespace octavo::grammar::testing
