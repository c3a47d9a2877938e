#include "octavo_grammar.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/c_abi.h"
#include "base/thread_pool.h"
#include "grammar/grammar_cache.h"
#include "grammar/json_schema.h"
#include "grammar/json_value.h"
#include "grammar/matcher.h"
#include "grammar/tool_calls.h"

using octavo::grammar::CompiledGrammar;
using octavo::grammar::Matcher;
using octavo::grammar::TokenId;
using octavo::grammar::Vocabulary;

struct octavo_vocabulary {
  std::shared_ptr<const Vocabulary> shared;
};
struct octavo_grammar {
  std::shared_ptr<const CompiledGrammar> shared;
};
struct octavo_matcher {
  Matcher matcher;
};
struct octavo_pool {
  octavo::ThreadPool threads;
};

namespace octavo::grammar {
namespace {

octavo_grammar_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::not_found:
      return OCTAVO_GRAMMAR_INVALID;
    case ErrorCode::unsupported:
    case ErrorCode::corrupt:
      return OCTAVO_GRAMMAR_CORRUPT;
    case ErrorCode::resource_exhausted:
      return OCTAVO_GRAMMAR_EXHAUSTED;
    default:
      return OCTAVO_GRAMMAR_INTERNAL;
  }
}

template <class Work>
std::int32_t guarded(octavo_grammar_error* error, Work&& work) noexcept {
  return guarded_call<code_of>(error, std::forward<Work>(work));
}

template <class Value, class Work>
Value value_or(Value otherwise, Work&& work) noexcept {
  try {
    return work();
  } catch (const std::exception&) {
    return otherwise;
  }
}

Result<JsonOptions> options_of(const char* json) {
  JsonOptions options;
  if (!json) return options;
  TRY(const Json given, parse_json(json, "options"));
  if (!given.is(Json::Kind::object)) return invalid("options", "must be a JSON object");
  for (const auto& [name, value] : given.members) {
    if (!value.is(Json::Kind::boolean)) return invalid("options", "{} must be true or false", name);
    const bool yes = value.boolean;
    if (name == "any_whitespace")
      options.whitespace = yes ? JsonOptions::Whitespace::bounded : JsonOptions::Whitespace::none;
    else if (name == "additional_properties")
      options.strict = !yes;
    else if (name == "any_order")
      options.any_order = yes;
    else if (name == "refuse_unknown")
      options.refuse_unknown = yes;
    else if (name == "refuse_unique")
      options.refuse_unique = yes;
    else
      return invalid("options",
                     "'{}' is not known: any_whitespace, additional_properties, any_order, refuse_unknown or "
                     "refuse_unique",
                     name);
  }
  return options;
}

Result<std::vector<Tool>> tools_of(const Json& list) {
  std::vector<Tool> tools;
  for (const Json& item : list.items) {
    const Json* function = item.find("function");
    const Json& tool = function ? *function : item;
    const Json *name = tool.find("name"), *parameters = tool.find("parameters"),
               *strict = tool.find("strict");
    if (!name || !name->is(Json::Kind::string))
      return invalid("tools", "tools[{}] must have a name, a string", tools.size());
    tools.push_back({name->text, parameters ? to_text(*parameters) : "", !strict || strict->boolean});
  }
  return tools;
}

Result<Grammar> tools_grammar(std::string_view text, const Vocabulary& vocabulary,
                              const JsonOptions& options) {
  TRY(const Json given, parse_json(text, "tools"));
  const Json *list = given.find("tools"), *choice = given.find("tool_choice"),
             *parallel = given.find("parallel"), *dialect = given.find("dialect");
  if (!list || !list->is(Json::Kind::array) || list->items.empty())
    return invalid("tools", "must be an object with \"tools\", an array of at least one tool");
  if (choice && choice->text != "auto" && choice->text != "required")
    return invalid("tools", "tool_choice must be \"auto\" or \"required\"");
  TRY(const std::vector<Tool> tools, tools_of(*list));
  const bool many = !parallel || parallel->boolean, required = choice && choice->text == "required";
  if (!dialect) {
    if (!required)
      return invalid("tools",
                     "tool_choice \"auto\" needs a dialect, which says how tool calls differ from text");
    TRY(const std::string schema, tool_list_schema(tools, many));
    return json_schema_grammar(schema, options);
  }
  const ToolDialect* known = tool_dialect(dialect->text);
  if (!known) return invalid("tools", "the dialect '{}' is not known", dialect->text);
  std::vector<std::string> special;
  for (const TokenId id : vocabulary.special()) special.emplace_back(vocabulary.bytes(id));
  TRY(const std::string tag,
      tool_call_tag(tools, required ? ToolChoice::required : ToolChoice::free, many, *known, special));
  return make_grammar({GrammarKind::structural_tag, tag, options, "tools"});
}

Result<Grammar> grammar_of(std::string_view kind, std::string_view text, const Vocabulary& vocabulary,
                           const JsonOptions& options) {
  if (kind == "tools") return tools_grammar(text, vocabulary, options);
  constexpr std::pair<std::string_view, GrammarKind> kKinds[] = {
      {"json_schema", GrammarKind::json_schema},
      {"json_object", GrammarKind::json_object},
      {"regex", GrammarKind::regex},
      {"ebnf", GrammarKind::ebnf},
      {"choice", GrammarKind::choice},
      {"structural_tag", GrammarKind::structural_tag}};
  for (const auto& [name, known] : kKinds)
    if (name == kind) return make_grammar({known, std::string(text), options, std::string(kind)});
  return invalid("kind",
                 "'{}' is not known: json_schema, json_object, regex, ebnf, choice, structural_tag or tools",
                 kind);
}

std::size_t bytes_or_default(std::size_t bytes, std::size_t by_default) {
  return bytes > 0 ? bytes : by_default;
}

// Returns the shortest list of tokens that spells the text, or nullopt.
std::optional<std::vector<TokenId>> spelled_by_tokens(const Vocabulary& vocabulary, std::string_view text) {
  constexpr std::size_t kNever = SIZE_MAX;
  struct Step {
    std::size_t tokens = kNever, bytes = 0;
    TokenId token = -1;
  };
  std::vector<Step> from(text.size() + 1);
  from.back().tokens = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    std::uint32_t node = 0;
    for (std::size_t end = at; end < text.size(); ++end) {
      const auto bytes = vocabulary.child_bytes(node);
      const auto found = std::ranges::lower_bound(bytes, static_cast<std::uint8_t>(text[end]));
      if (found == bytes.end() || *found != static_cast<std::uint8_t>(text[end])) break;
      node = vocabulary.child_nodes(node)[static_cast<std::size_t>(found - bytes.begin())];
      const TrieNode& reached = vocabulary.trie()[node];
      const std::size_t rest = from[end + 1].tokens;
      if (reached.token_count > 0 && rest != kNever && rest + 1 <= from[at].tokens)
        from[at] = {rest + 1, end + 1 - at, vocabulary.sorted_tokens()[reached.first_token]};
    }
  }
  if (from[0].tokens == kNever) return std::nullopt;
  std::vector<TokenId> tokens;
  for (std::size_t at = 0; at < text.size(); at += from[at].bytes) tokens.push_back(from[at].token);
  return tokens;
}

}  // namespace
}  // namespace octavo::grammar

using namespace octavo::grammar;  // for the C functions below

int32_t octavo_grammar_abi(void) { return OCTAVO_GRAMMAR_ABI; }

int32_t octavo_vocabulary_create(const uint8_t* bytes, const size_t* ends, size_t count,
                                 const int32_t* special, size_t special_count, const int32_t* eos,
                                 size_t eos_count, size_t mask_cache_bytes, octavo_vocabulary** vocabulary,
                                 octavo_grammar_error* error) {
  return guarded(error, [&]() -> octavo::Result<> {
    if (count > INT32_MAX) return octavo::invalid("tokens", "{} tokens, the limit is {}", count, INT32_MAX);
    std::vector<std::string> tokens;
    for (std::size_t i = 0, begin = 0; i < count; begin = ends[i++]) {
      if (ends[i] < begin) return octavo::invalid("tokens", "token {} ends before it begins", i);
      tokens.emplace_back(reinterpret_cast<const char*>(bytes) + begin, ends[i] - begin);
    }
    TRY(auto made, Vocabulary::make(std::move(tokens), {special, special + special_count},
                                    {eos, eos + eos_count}, bytes_or_default(mask_cache_bytes, 64u << 20)));
    *vocabulary = new octavo_vocabulary{std::move(made)};
    return {};
  });
}

void octavo_vocabulary_free(octavo_vocabulary* vocabulary) { delete vocabulary; }

size_t octavo_vocabulary_mask_words(const octavo_vocabulary* vocabulary) {
  return vocabulary->shared->mask_words();
}

int32_t octavo_grammar_compile(const octavo_vocabulary* vocabulary, const char* kind, const char* text,
                               size_t text_bytes, const char* options, size_t parser_bytes,
                               octavo_grammar** grammar, octavo_grammar_error* error) {
  return guarded(error, [&]() -> octavo::Result<> {
    TRY(const JsonOptions json, options_of(options));
    TRY(Grammar source, grammar_of(kind, {text, text_bytes}, *vocabulary->shared, json));
    TRY(auto compiled, CompiledGrammar::compile(std::move(source), vocabulary->shared,
                                                bytes_or_default(parser_bytes, 32u << 20)));
    *grammar = new octavo_grammar{std::move(compiled)};
    return {};
  });
}

void octavo_grammar_free(octavo_grammar* grammar) { delete grammar; }

size_t octavo_grammar_size(const octavo_grammar* grammar) { return grammar->shared->byte_size(); }

int32_t octavo_grammar_store(const octavo_grammar* grammar, uint8_t* out, size_t capacity, size_t* bytes,
                             octavo_grammar_error* error) {
  return guarded(error, [&]() -> octavo::Result<> {
    const std::string stored = grammar->shared->to_bytes();
    *bytes = stored.size();
    if (capacity > 0) std::memcpy(out, stored.data(), std::min(capacity, stored.size()));
    return {};
  });
}

int32_t octavo_grammar_load(const octavo_vocabulary* vocabulary, const uint8_t* data, size_t bytes,
                            size_t parser_bytes, octavo_grammar** grammar, octavo_grammar_error* error) {
  return guarded(error, [&]() -> octavo::Result<> {
    const std::string_view stored(reinterpret_cast<const char*>(data), bytes);
    TRY(auto loaded,
        CompiledGrammar::from_bytes(stored, vocabulary->shared, bytes_or_default(parser_bytes, 32u << 20)));
    *grammar = new octavo_grammar{std::move(loaded)};
    return {};
  });
}

octavo_matcher* octavo_matcher_create(const octavo_grammar* grammar) {
  return value_or<octavo_matcher*>(nullptr, [&] { return new octavo_matcher{Matcher(grammar->shared)}; });
}

octavo_matcher* octavo_matcher_fork(const octavo_matcher* matcher) {
  return value_or<octavo_matcher*>(nullptr, [&] { return new octavo_matcher(*matcher); });
}

void octavo_matcher_free(octavo_matcher* matcher) { delete matcher; }

int32_t octavo_matcher_accept(octavo_matcher* matcher, int32_t token) {
  return value_or<int32_t>(0, [&] { return matcher->matcher.accept(token) ? 1 : 0; });
}

int64_t octavo_matcher_accept_text(octavo_matcher* matcher, const char* text, size_t bytes) {
  return value_or<int64_t>(-1, [&]() -> int64_t {
    const auto tokens = spelled_by_tokens(matcher->matcher.vocabulary(), {text, bytes});
    if (!tokens) return -1;
    Matcher after = matcher->matcher;
    for (const TokenId token : *tokens)
      if (!after.accept(token)) return -1;
    matcher->matcher = std::move(after);
    return static_cast<int64_t>(tokens->size());
  });
}

int32_t octavo_matcher_fill(octavo_matcher* matcher, int32_t* mask, size_t words,
                            octavo_grammar_error* error) {
  return guarded(error, [&]() -> octavo::Result<> {
    const std::size_t needed = matcher->matcher.vocabulary().mask_words();
    if (words < needed) return octavo::invalid("mask", "{} words, the vocabulary needs {}", words, needed);
    return matcher->matcher.fill_mask({mask, words});
  });
}

octavo_pool* octavo_pool_create(int32_t threads) {
  constexpr int32_t kThreadsMax = 1024;
  return value_or<octavo_pool*>(
      nullptr, [&] { return new octavo_pool{octavo::ThreadPool(std::clamp(threads, 1, kThreadsMax))}; });
}

void octavo_pool_free(octavo_pool* pool) { delete pool; }

int64_t octavo_matcher_fill_batch(octavo_pool* pool, octavo_matcher* const* matchers, size_t count,
                                  int32_t* masks, size_t stride) {
  for (std::size_t i = 0; i < count; ++i)
    if (stride < matchers[i]->matcher.vocabulary().mask_words()) return -1;
  std::atomic<int64_t> failed = 0;
  pool->threads.for_units(static_cast<std::int64_t>(count), [&](int, std::int64_t unit) {
    const auto i = static_cast<std::size_t>(unit);
    int32_t* row = masks + i * stride;
    if (octavo_matcher_fill(matchers[i], row, stride, nullptr) == OCTAVO_GRAMMAR_OK) return;
    std::fill_n(row, stride, 0);
    ++failed;
  });
  return failed;
}

void octavo_matcher_rollback(octavo_matcher* matcher, size_t tokens) {
  value_or<bool>(false, [&] { return matcher->matcher.rollback(tokens), true; });
}

size_t octavo_matcher_accepted(const octavo_matcher* matcher) { return matcher->matcher.accepted(); }

void octavo_matcher_forced_text(octavo_matcher* matcher, char* out, size_t capacity, size_t* bytes) {
  const std::string text = value_or<std::string>({}, [&] { return matcher->matcher.jump_forward(); });
  *bytes = text.size();
  if (capacity > 0) std::memcpy(out, text.data(), std::min(capacity, text.size()));
}

int32_t octavo_matcher_can_terminate(octavo_matcher* matcher) {
  return value_or<int32_t>(0, [&] { return matcher->matcher.can_terminate() ? 1 : 0; });
}

int32_t octavo_matcher_is_terminated(const octavo_matcher* matcher) {
  return matcher->matcher.is_terminated() ? 1 : 0;
}
