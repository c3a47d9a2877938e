// One out of a list of texts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "grammar/grammar.h"

namespace octavo::grammar {

inline Result<Grammar> choice_grammar(std::vector<std::string> texts) {
  if (texts.empty()) return invalid("choice", "the list is empty");
  Grammar grammar;
  grammar.root = grammar.rule("root", grammar.leaf(automaton_of(std::move(texts))));
  return grammar;
}

}  // namespace octavo::grammar
