// Returns the grammar of guided_choice: the output must be one of these texts.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/limits.h"

namespace octavo::grammar {

inline Result<Grammar> choice_grammar(std::vector<std::string> texts) {
  if (texts.empty()) return invalid("choice", "the list is empty; give at least one text");
  if (trie_bytes(texts) > kListBytesMax)
    return invalid(
        "choice",
        "the texts have more than {} bytes apart from common beginnings: give fewer or shorter texts",
        kListBytesMax);
  Grammar grammar;
  grammar.root = grammar.rule("the choices", grammar.leaf(automaton_of(std::move(texts))));
  return grammar;
}

}  // namespace octavo::grammar
