#include "grammar/grammar_cache.h"

#include "grammar/choice.h"
#include "grammar/json_value.h"
#include "grammar/lark.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "grammar/structural_tag.h"

namespace octavo::grammar {

Result<Grammar> make_grammar(const GrammarSource& source) {
  switch (source.kind) {
    case GrammarKind::json_schema:
      return json_schema_grammar(source.text, source.options);
    case GrammarKind::json_object:
      return json_object_grammar(source.options);
    case GrammarKind::regex:
      return regex_grammar(source.text);
    case GrammarKind::ebnf:
      return ebnf_or_lark_grammar(source.text);
    case GrammarKind::structural_tag:
      return structural_tag_grammar(source.text, source.options);
    case GrammarKind::choice:
      break;
  }
  TRY(const Json list, parse_json(source.text, "choice"));
  if (!list.is(Json::Kind::array)) return invalid("choice", "must be an array of strings");
  std::vector<std::string> texts;
  for (const Json& item : list.items) {
    if (!item.is(Json::Kind::string)) return invalid("choice", "each item must be a string");
    texts.push_back(item.text);
  }
  return choice_grammar(std::move(texts));
}

namespace {

std::string key_of(const GrammarSource& source) {
  const JsonOptions& o = source.options;
  return fmt::format("{} {} {} {} {} {} {}", static_cast<int>(source.kind), static_cast<int>(o.whitespace),
                     o.strict, o.any_order, o.refuse_unknown, o.refuse_unique, source.text);
}

}  // namespace

GrammarCache::GrammarCache(std::shared_ptr<const Vocabulary> vocabulary, std::size_t bytes_max,
                           std::size_t parser_bytes_max)
    : vocabulary_(std::move(vocabulary)), bytes_max_(bytes_max), parser_bytes_max_(parser_bytes_max) {}

std::shared_ptr<const CompiledGrammar> GrammarCache::find(const GrammarSource& source) {
  const std::string key = key_of(source);
  const std::scoped_lock lock(mutex_);
  return find(key);
}

std::shared_ptr<const CompiledGrammar> GrammarCache::find(const std::string& key) {
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  ++stats_.hits;
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->grammar;
}

Result<std::shared_ptr<const CompiledGrammar>> GrammarCache::compile(const GrammarSource& source) {
  const std::string key = key_of(source);
  {
    std::unique_lock lock(mutex_);
    compiled_.wait(lock, [&] { return !under_way_.contains(key); });
    if (auto known = find(key)) return known;
    ++stats_.misses;
    under_way_.insert(key);
  }
  // Its destructor wakes the threads that wait for the same source, even after bad_alloc.
  struct UnderWay {
    GrammarCache& cache;
    const std::string& key;
    ~UnderWay() {
      {
        const std::scoped_lock lock(cache.mutex_);
        cache.under_way_.erase(key);
      }
      cache.compiled_.notify_all();
    }
  } const under_way{*this, key};
  TRY(Grammar grammar, make_grammar(source));
  TRY(auto compiled, CompiledGrammar::compile(std::move(grammar), vocabulary_, parser_bytes_max_));
  const std::scoped_lock lock(mutex_);
  entries_.push_front({key, compiled});
  by_key_[key] = entries_.begin();
  evict();
  return compiled;
}

void GrammarCache::evict() {
  stats_.bytes = 0;
  auto kept = entries_.begin();
  for (; kept != entries_.end(); ++kept) {
    const std::size_t bytes = kept->byte_size();
    if (stats_.bytes + bytes > bytes_max_) break;
    stats_.bytes += bytes;
  }
  for (auto it = kept; it != entries_.end(); ++it) {
    by_key_.erase(it->key);
    ++stats_.evictions;
  }
  entries_.erase(kept, entries_.end());
}

void GrammarCache::warm_up() {
  std::vector<std::int32_t> mask(vocabulary_->mask_words());
  constexpr std::string_view kSchemas[] = {R"({"type":"string"})",
                                           R"({"type":"string","maxLength":100000})",
                                           R"({"type":"string","pattern":"\\S"})",
                                           R"({"type":"string","format":"date-time"})",
                                           R"({"type":"string","format":"email"})",
                                           R"({"type":"string","format":"uri"})",
                                           R"({"type":"string","format":"uuid"})"};
  for (const std::string_view schema : kSchemas) {
    const auto compiled = compile({GrammarKind::json_schema, std::string(schema), {}});
    if (!compiled) continue;
    Matcher matcher(*compiled);
    for (TokenId id = 0; id < vocabulary_->size(); ++id)
      if (vocabulary_->bytes(id) == "\"" && matcher.accept(id)) break;
    // Called only to fill the mask cache. If the vocabulary has no token '"', the cache just stays without
    // these masks.
    (void)matcher.fill_mask(mask);
  }
}

GrammarCache::Stats GrammarCache::stats() const {
  const std::scoped_lock lock(mutex_);
  Stats stats = stats_;
  stats.entries = entries_.size();
  return stats;
}

}  // namespace octavo::grammar
