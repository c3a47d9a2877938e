"""Octavo's grammar engine: which tokens a model may write next under a JSON Schema, a regex or a grammar.

    from octavo.grammar import Vocabulary, compile_json_schema, Matcher, allocate_bitmask, apply_bitmask

    vocabulary = Vocabulary.from_file("path/to/tokenizer.json")
    grammar = compile_json_schema({"type": "object", "properties": {"name": {"type": "string"}}}, vocabulary)
    matcher, mask = Matcher(grammar), allocate_bitmask(1, vocabulary)
    while not matcher.is_terminated:
        matcher.fill(mask[0])
        apply_bitmask(logits, mask)
        matcher.accept(int(logits.argmax()))

A mask is int32 words: bit i % 32 of word i // 32 is token i, 1 where the token is allowed. This is XGrammar's
layout. Masks are numpy arrays, torch CPU tensors, or anything with DLPack on the CPU. Calls release the GIL.
"""

from octavo.grammar.bitmask import allocate_bitmask, apply_bitmask
from octavo.grammar.engine import (Grammar, GrammarError, LimitReached, Matcher, MatcherPool, Options, compile_choice,
                                   compile_ebnf, compile_json_object, compile_json_schema, compile_lark, compile_regex,
                                   compile_structural_tag, compile_tools)
from octavo.grammar.processor import GrammarLogitsProcessor
from octavo.grammar.vocabulary import Vocabulary

__all__ = ["Grammar", "GrammarError", "GrammarLogitsProcessor", "LimitReached", "Matcher", "MatcherPool", "Options",
           "Vocabulary", "allocate_bitmask", "apply_bitmask", "compile_choice", "compile_ebnf", "compile_json_object",
           "compile_json_schema", "compile_lark", "compile_regex", "compile_structural_tag", "compile_tools"]
