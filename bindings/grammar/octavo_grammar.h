/* Octavo's grammar engine from any language: which tokens may follow a text under a JSON Schema, a regular
 * expression or a grammar.
 *
 *   octavo_grammar_error error;
 *   octavo_vocabulary_create(bytes, ends, count, NULL, 0, &eos, 1, 0, &vocabulary, &error);
 *   octavo_grammar_compile(vocabulary, "json_schema", schema, strlen(schema), NULL, 0, &grammar, &error);
 *   octavo_matcher *matcher = octavo_matcher_create(grammar);
 *   while (!octavo_matcher_is_terminated(matcher)) {
 *     octavo_matcher_fill(matcher, mask, words, &error);
 *     octavo_matcher_accept(matcher, sample(logits, mask));
 *   }
 *
 * No function throws, exits or calls back. Vocabularies and grammars are immutable and thread-safe; one
 * matcher is used by one thread at a time. Texts are UTF-8 with an explicit length, unless the comment says
 * otherwise. A grammar keeps its vocabulary alive, and a matcher keeps its grammar alive. While
 * octavo_grammar_abi() returns the same number, only functions are added.
 */
#ifndef OCTAVO_GRAMMAR_H
#define OCTAVO_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define OCTAVO_GRAMMAR_API __attribute__((visibility("default")))
#else
#define OCTAVO_GRAMMAR_API
#endif

#define OCTAVO_GRAMMAR_ABI 1

/* Returns OCTAVO_GRAMMAR_ABI of the compiled library. */
OCTAVO_GRAMMAR_API int32_t octavo_grammar_abi(void);

typedef enum {
  OCTAVO_GRAMMAR_OK = 0,
  OCTAVO_GRAMMAR_INVALID = 1,   /* the input is invalid or not supported; see the message */
  OCTAVO_GRAMMAR_CORRUPT = 2,   /* stored bytes are damaged, or of another version or vocabulary */
  OCTAVO_GRAMMAR_EXHAUSTED = 3, /* a limit of work or memory was reached, or no token may follow */
  OCTAVO_GRAMMAR_INTERNAL = 4   /* a failure that is not the caller's fault */
} octavo_grammar_code;

/* Description of a failure; set by functions that return a code other than OCTAVO_GRAMMAR_OK. May be NULL. */
typedef struct {
  int32_t code;       /* octavo_grammar_code */
  char field[64];     /* the invalid input, "" if there is none; NUL-terminated */
  char message[1024]; /* one line, NUL-terminated, truncated if longer */
} octavo_grammar_error;

typedef struct octavo_vocabulary octavo_vocabulary;
typedef struct octavo_grammar octavo_grammar;
typedef struct octavo_matcher octavo_matcher;
typedef struct octavo_pool octavo_pool;

/* The tokens of a model: token i is the bytes from ends[i - 1] (0 for the first) to ends[i], as it appears in
 * texts. A token without bytes is never allowed. special: tokens that text never produces, such as
 * <|im_end|>; their bytes are their names. eos: tokens that end a text. mask_cache_bytes limits the masks
 * that all grammars of the vocabulary share (0: 64 MiB). */
OCTAVO_GRAMMAR_API int32_t octavo_vocabulary_create(const uint8_t* bytes, const size_t* ends, size_t count,
                                                    const int32_t* special, size_t special_count,
                                                    const int32_t* eos, size_t eos_count,
                                                    size_t mask_cache_bytes, octavo_vocabulary** vocabulary,
                                                    octavo_grammar_error* error);
OCTAVO_GRAMMAR_API void octavo_vocabulary_free(octavo_vocabulary* vocabulary);
/* Returns the number of int32 words in a mask, which has one bit for each token. */
OCTAVO_GRAMMAR_API size_t octavo_vocabulary_mask_words(const octavo_vocabulary* vocabulary);

/* Compiles a grammar. kind (NUL-terminated): type of the text: "json_schema", "json_object" (no text),
 * "regex", "ebnf" (GBNF or Lark), "choice" (a JSON array of strings), "structural_tag", or "tools" (JSON):
 *
 *   {"tools": [..as in OpenAI's API..], "tool_choice": "auto" | "required", "parallel": true,
 *    "dialect": "hermes"}
 *
 * Without a dialect, the output is the JSON list of calls that vLLM's `required` writes. options: NULL, or a
 * NUL-terminated JSON object, whose defaults are {"any_whitespace": true, "additional_properties": false,
 * "any_order": true, "refuse_unknown": false, "refuse_unique": false}. parser_bytes: limit of the parse cache
 * of the grammar's matchers (0: 32 MiB). A full cache is cleared, and parses are computed again. */
OCTAVO_GRAMMAR_API int32_t octavo_grammar_compile(const octavo_vocabulary* vocabulary, const char* kind,
                                                  const char* text, size_t text_bytes, const char* options,
                                                  size_t parser_bytes, octavo_grammar** grammar,
                                                  octavo_grammar_error* error);
OCTAVO_GRAMMAR_API void octavo_grammar_free(octavo_grammar* grammar);
/* Returns the current size of the grammar in bytes. */
OCTAVO_GRAMMAR_API size_t octavo_grammar_size(const octavo_grammar* grammar);

/* Writes at most `capacity` bytes of the compiled grammar; `bytes` receives the total number. */
OCTAVO_GRAMMAR_API int32_t octavo_grammar_store(const octavo_grammar* grammar, uint8_t* out, size_t capacity,
                                                size_t* bytes, octavo_grammar_error* error);
/* Loads a grammar that octavo_grammar_store of the same release has written for an equal vocabulary. */
OCTAVO_GRAMMAR_API int32_t octavo_grammar_load(const octavo_vocabulary* vocabulary, const uint8_t* data,
                                               size_t bytes, size_t parser_bytes, octavo_grammar** grammar,
                                               octavo_grammar_error* error);

/* Creates a matcher at the beginning of a text; NULL: out of memory. */
OCTAVO_GRAMMAR_API octavo_matcher* octavo_matcher_create(const octavo_grammar* grammar);
/* Creates an independent copy. */
OCTAVO_GRAMMAR_API octavo_matcher* octavo_matcher_fork(const octavo_matcher* matcher);
OCTAVO_GRAMMAR_API void octavo_matcher_free(octavo_matcher* matcher);

/* Accepts a token. Returns 1, or 0 without a change if the token may not follow. An end-of-text token
 * terminates the matcher. */
OCTAVO_GRAMMAR_API int32_t octavo_matcher_accept(octavo_matcher* matcher, int32_t token);
/* Accepts a text, which may be incomplete, as tokens that spell it. Returns the number of tokens (for
 * octavo_matcher_rollback); -1, without a change, if the text may not follow or no tokens spell it. */
OCTAVO_GRAMMAR_API int64_t octavo_matcher_accept_text(octavo_matcher* matcher, const char* text,
                                                      size_t bytes);

/* Sets bit i % 32 of word i / 32 for each token i that may follow, and clears all others: the layout of
 * XGrammar's bitmask. `words`: at least octavo_vocabulary_mask_words(); further words are cleared. */
OCTAVO_GRAMMAR_API int32_t octavo_matcher_fill(octavo_matcher* matcher, int32_t* mask, size_t words,
                                               octavo_grammar_error* error);

/* Creates threads for octavo_matcher_fill_batch, one batch at a time. `threads` >= 1 includes the caller. */
OCTAVO_GRAMMAR_API octavo_pool* octavo_pool_create(int32_t threads);
OCTAVO_GRAMMAR_API void octavo_pool_free(octavo_pool* pool);
/* Fills row i, `stride` words after row i - 1, from matchers[i]. A matcher must not occur twice. If
 * octavo_matcher_fill would fail, the row is zero. Returns the number of such rows; -1: `stride` is too
 * small. */
OCTAVO_GRAMMAR_API int64_t octavo_matcher_fill_batch(octavo_pool* pool, octavo_matcher* const* matchers,
                                                     size_t count, int32_t* masks, size_t stride);

/* Removes the last `tokens` accepted tokens, or all tokens if there are fewer. */
OCTAVO_GRAMMAR_API void octavo_matcher_rollback(octavo_matcher* matcher, size_t tokens);
OCTAVO_GRAMMAR_API size_t octavo_matcher_accepted(const octavo_matcher* matcher);
/* Writes at most `capacity` bytes of the text that must follow; `bytes` receives the total number. */
OCTAVO_GRAMMAR_API void octavo_matcher_forced_text(octavo_matcher* matcher, char* out, size_t capacity,
                                                   size_t* bytes);
/* Returns 1 if the text may end here, otherwise 0. */
OCTAVO_GRAMMAR_API int32_t octavo_matcher_can_terminate(octavo_matcher* matcher);
/* Returns 1 if an end-of-text token was accepted, otherwise 0. */
OCTAVO_GRAMMAR_API int32_t octavo_matcher_is_terminated(const octavo_matcher* matcher);

#ifdef __cplusplus
}
#endif
#endif
