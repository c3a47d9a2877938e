/* Tests octavo_grammar.h from C: masks, texts, rollback, forks, batches, stored grammars, errors. */
#include "octavo_grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                         \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: %s is not true\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

enum { kEos = 256, kTokens = 257, kWords = (kTokens + 31) / 32 };

static octavo_grammar_error error;
static octavo_vocabulary* vocabulary;

static int allowed(const int32_t* mask, int token) {
  return (int)((uint32_t)mask[token / 32] >> (token % 32) & 1u);
}

static octavo_grammar* compile(const char* kind, const char* text) {
  octavo_grammar* grammar = NULL;
  const int32_t code =
      octavo_grammar_compile(vocabulary, kind, text, strlen(text), NULL, 0, &grammar, &error);
  if (code != OCTAVO_GRAMMAR_OK) fprintf(stderr, "%s: %s\n", error.field, error.message);
  EXPECT(code == OCTAVO_GRAMMAR_OK && grammar != NULL);
  return grammar;
}

static int reads(const octavo_grammar* grammar, const char* text) {
  octavo_matcher* matcher = octavo_matcher_create(grammar);
  const int ok =
      octavo_matcher_accept_text(matcher, text, strlen(text)) >= 0 && octavo_matcher_can_terminate(matcher);
  octavo_matcher_free(matcher);
  return ok;
}

static void test_masks_and_rollback(void) {
  int32_t mask[kWords + 1];
  octavo_grammar* grammar = compile("regex", "[ab]c");
  octavo_matcher* matcher = octavo_matcher_create(grammar);
  mask[kWords] = -1;
  EXPECT(octavo_matcher_fill(matcher, mask, kWords + 1, &error) == OCTAVO_GRAMMAR_OK);
  EXPECT(allowed(mask, 'a') && allowed(mask, 'b') && !allowed(mask, 'c') && !allowed(mask, kEos) &&
         mask[kWords] == 0);
  EXPECT(octavo_matcher_fill(matcher, mask, kWords - 1, &error) == OCTAVO_GRAMMAR_INVALID);
  EXPECT(strcmp(error.field, "mask") == 0);
  EXPECT(!octavo_matcher_accept(matcher, 'c') && octavo_matcher_accept(matcher, 'a'));
  octavo_matcher* fork = octavo_matcher_fork(matcher);
  EXPECT(octavo_matcher_accept(fork, 'c') && octavo_matcher_accept(fork, kEos) &&
         octavo_matcher_is_terminated(fork));
  EXPECT(!octavo_matcher_is_terminated(matcher) && octavo_matcher_accepted(matcher) == 1);
  octavo_matcher_rollback(fork, 2);
  char text[8];
  size_t bytes = 0;
  octavo_matcher_forced_text(fork, text, sizeof text, &bytes);
  EXPECT(bytes == 1 && text[0] == 'c');
  octavo_matcher_free(fork);
  octavo_matcher_free(matcher);
  octavo_grammar_free(grammar);
}

static void test_kinds(void) {
  octavo_grammar* grammar =
      compile("json_schema",
              "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]}");
  EXPECT(reads(grammar, "{\"a\": 12}") && !reads(grammar, "{}"));
  octavo_grammar_free(grammar);
  grammar = compile("choice", "[\"yes\", \"no\"]");
  EXPECT(reads(grammar, "no") && !reads(grammar, "maybe"));
  octavo_grammar_free(grammar);
  grammar = compile("ebnf", "root ::= \"x\"+");
  EXPECT(reads(grammar, "xxx") && !reads(grammar, ""));
  octavo_grammar_free(grammar);
  grammar = compile("json_object", "");
  EXPECT(reads(grammar, "{\"a\": [1]}") && !reads(grammar, "[1]"));
  octavo_grammar_free(grammar);
  grammar = compile("structural_tag",
                    "{\"type\":\"structural_tag\",\"format\":{\"type\":\"sequence\",\"elements\":["
                    "{\"type\":\"const_string\",\"value\":\"<f>\"},{\"type\":\"json_schema\",\"json_schema\":"
                    "{\"type\":\"null\"}}]}}");
  EXPECT(reads(grammar, "<f>null") && !reads(grammar, "<f>1"));
  octavo_grammar_free(grammar);
  grammar = compile(
      "tools",
      "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
      "\"properties\":{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"]}}}],\"tool_choice\":\"required\"}");
  EXPECT(reads(grammar, "[{\"name\": \"f\", \"parameters\": {\"n\": 3}}]") && !reads(grammar, "[]"));
  octavo_grammar_free(grammar);
}

static void test_batches(void) {
  enum { kRows = 6 };
  int32_t masks[kRows][kWords];
  octavo_matcher* matchers[kRows];
  octavo_grammar* grammar = compile("regex", "[a-z]{3}");
  octavo_pool* pool = octavo_pool_create(2);
  for (int i = 0; i < kRows; ++i) {
    matchers[i] = octavo_matcher_create(grammar);
    EXPECT(octavo_matcher_accept_text(matchers[i], "abc", (size_t)(i % 3)) == i % 3);
  }
  EXPECT(octavo_matcher_accept_text(matchers[5], "c", 1) == 1 && octavo_matcher_accept(matchers[5], kEos));
  EXPECT(octavo_matcher_fill_batch(pool, matchers, kRows, &masks[0][0], kWords) == 1);
  for (int i = 0; i < kRows; ++i) EXPECT(allowed(masks[i], 'q') == (i < 5));
  EXPECT(octavo_matcher_fill_batch(pool, matchers, kRows, &masks[0][0], kWords - 1) == -1);
  for (int i = 0; i < kRows; ++i) octavo_matcher_free(matchers[i]);
  octavo_pool_free(pool);
  octavo_grammar_free(grammar);
}

static void test_stored_grammars(void) {
  octavo_grammar *loaded = NULL,
                 *grammar =
                     compile("json_schema",
                             "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{}},\"required\":[\"b\"]}");
  size_t bytes = 0, again = 0;
  EXPECT(octavo_grammar_store(grammar, NULL, 0, &bytes, &error) == OCTAVO_GRAMMAR_OK && bytes > 0);
  uint8_t* stored = malloc(bytes);
  EXPECT(stored && octavo_grammar_store(grammar, stored, bytes, &again, &error) == OCTAVO_GRAMMAR_OK &&
         again == bytes);
  EXPECT(octavo_grammar_load(vocabulary, stored, bytes, 0, &loaded, &error) == OCTAVO_GRAMMAR_OK);
  EXPECT(reads(loaded, "{\"b\":1,\"a\":[]}") && !reads(loaded, "{\"a\":1}"));
  octavo_grammar_free(loaded);
  for (size_t i = 0; i < bytes; i += 7) { /* any damaged byte is an error */
    stored[i] ^= 1;
    EXPECT(octavo_grammar_load(vocabulary, stored, bytes, 0, &loaded, &error) != OCTAVO_GRAMMAR_OK);
    stored[i] ^= 1;
  }
  EXPECT(octavo_grammar_load(vocabulary, stored, bytes - 1, 0, &loaded, &error) == OCTAVO_GRAMMAR_CORRUPT);
  EXPECT(octavo_grammar_load(vocabulary, stored, 3, 0, &loaded, &error) == OCTAVO_GRAMMAR_CORRUPT);
  free(stored);
  octavo_grammar_free(grammar);
}

static void test_mistakes_are_named(void) {
  octavo_grammar* grammar = NULL;
  EXPECT(octavo_grammar_compile(vocabulary, "json", "{}", 2, NULL, 0, &grammar, &error) ==
         OCTAVO_GRAMMAR_INVALID);
  EXPECT(strcmp(error.field, "kind") == 0 && strstr(error.message, "json_schema"));
  EXPECT(octavo_grammar_compile(vocabulary, "regex", "(", 1, NULL, 0, &grammar, &error) ==
         OCTAVO_GRAMMAR_INVALID);
  EXPECT(octavo_grammar_compile(vocabulary, "regex", "a", 1, "{\"x\":true}", 0, &grammar, &error) ==
         OCTAVO_GRAMMAR_INVALID);
  EXPECT(strcmp(error.field, "options") == 0);
  EXPECT(octavo_grammar_compile(vocabulary, "json_schema", "{\"maxLength\":-1}", 16, NULL, 0, &grammar,
                                NULL) == OCTAVO_GRAMMAR_INVALID);
  EXPECT(grammar == NULL);
}

int main(void) {
  uint8_t bytes[256];
  size_t ends[kTokens];
  const int32_t eos = kEos;
  for (int i = 0; i < kTokens; ++i) {
    if (i < 256) bytes[i] = (uint8_t)i;
    ends[i] = i < 256 ? (size_t)i + 1 : 256;
  }
  EXPECT(octavo_grammar_abi() == OCTAVO_GRAMMAR_ABI);
  EXPECT(octavo_vocabulary_create(bytes, ends, kTokens, NULL, 0, &eos, 1, 0, &vocabulary, &error) ==
         OCTAVO_GRAMMAR_OK);
  EXPECT(octavo_vocabulary_mask_words(vocabulary) == kWords);
  test_masks_and_rollback();
  test_kinds();
  test_batches();
  test_stored_grammars();
  test_mistakes_are_named();
  octavo_vocabulary_free(vocabulary);
  return 0;
}
