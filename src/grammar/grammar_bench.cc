// Measures compile times and mask times with generated vocabularies of 32k and 128k tokens. Prints
// percentiles in us.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "grammar/grammar_cache.h"
#include "grammar/matcher.h"

namespace octavo::grammar {
namespace {

// Returns a vocabulary like that of a BPE tokenizer: bytes, words of two to four syllables, digits,
// punctuation, spaces, and words in other scripts.
std::shared_ptr<const Vocabulary> made_up_vocabulary(std::size_t size) {
  std::uint64_t state = 42;
  const auto next = [&](std::size_t n) {
    return static_cast<std::size_t>((state = state * 6364136223846793005ull + 1442695040888963407ull) >> 33) %
           n;
  };
  constexpr std::string_view kSyllables[] = {"re", "con", "ta",  "ing",  "er", "s",  "tion",
                                             "al", "de",  "pro", "ment", "a",  "co", "li",
                                             "ne", "ver", "ous", "st",   "in", "ma"};
  constexpr std::string_view kPunctuation[] = {"\"", "\",", "\":",  "\": ", "{", "}",  "},", "[", "]",
                                               "],", "\n",  "\n  ", "    ", "(", ")",  ";",  ".", "->",
                                               "//", "\\",  "\\n",  "'",    "=", "==", "<",  "/>"};
  constexpr std::string_view kForeign[] = {"\xC3\xA9",     "\xC3\xBC",     "\xD0\xB0",
                                           "\xD0\xBE",     "\xD0\xBD",     "\xE4\xB8\xAD",
                                           "\xE5\x9B\xBD", "\xE3\x81\xAE", "\xF0\x9F\x98\x80"};
  std::set<std::string> words;
  while (words.size() < size - 257) {
    std::string word;
    const std::size_t kind = next(20);
    const auto append = [&](auto& pieces, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) word += pieces[next(std::size(pieces))];
    };
    if (kind < 13)
      append(kSyllables, 1 + next(5));
    else if (kind < 14)
      for (std::size_t i = 1 + next(3); i > 0; --i) word.push_back(static_cast<char>('0' + next(10)));
    else if (kind < 17)
      append(kPunctuation, 1 + next(3));
    else
      append(kForeign, 1 + next(4));
    if (next(2) == 0) word = " " + word;
    if (next(6) == 0)
      std::ranges::transform(word, word.begin(),
                             [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    if (word.size() > 1) words.insert(word);
  }
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(1, static_cast<char>(b));
  tokens.insert(tokens.end(), words.begin(), words.end());
  tokens.emplace_back("<eos>");
  return *Vocabulary::make(tokens, {}, {static_cast<TokenId>(tokens.size() - 1)});
}

std::vector<GrammarSource> sources() {
  std::vector<GrammarSource> out;
  for (int i = 0; i < 40; ++i) {
    out.push_back(
        {GrammarKind::json_schema,
         fmt::format(
             R"({{"type":"object","properties":{{"name_{0}":{{"type":"string"}},"age_{0}":{{"type":"integer","minimum":0,"maximum":{1}}},
      "tags":{{"type":"array","items":{{"type":"string","maxLength":{2}}},"maxItems":5}},"kind":{{"enum":["alpha_{0}","beta","gamma"]}},
      "address":{{"type":"object","properties":{{"street":{{"type":"string"}},"zip":{{"type":"string","pattern":"^[0-9]{{5}}$"}},"since":{{"type":"string","format":"date"}}}},"required":["street"]}}}},
      "required":["name_{0}","kind"]}})",
             i, 100 + i, 10 + i),
         {}});
    out.push_back(
        {GrammarKind::json_schema,
         fmt::format(
             R"({{"$defs":{{"n":{{"type":"object","properties":{{"value_{0}":{{"type":"number"}},"children":{{"type":"array","items":{{"$ref":"#/$defs/n"}}}}}},"required":["value_{0}"]}}}},"$ref":"#/$defs/n"}})",
             i),
         {}});
  }
  out.push_back({GrammarKind::json_object, "", {}});
  out.push_back({GrammarKind::regex, "[A-Z][a-z]+( [A-Z][a-z]+)*, \\d{1,3}", {}});
  return out;
}

double microseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void report(benchmark::State& state, const std::string& name, std::vector<double>& times) {
  std::ranges::sort(times);
  for (const auto& [label, p] : {std::pair("p50", 0.5), {"p99", 0.99}, {"p99.9", 0.999}})
    state.counters[name + "_" + label] =
        times[std::min(times.size() - 1, static_cast<std::size_t>(p * static_cast<double>(times.size())))];
}

void grammars(benchmark::State& state) {
  const auto vocabulary = made_up_vocabulary(static_cast<std::size_t>(state.range(0)));
  std::vector<std::int32_t> mask(vocabulary->mask_words());
  std::vector<double> compile_times, mask_times, accept_times;
  for (auto _ : state) {
    std::uint64_t random = 7;
    for (const GrammarSource& source : sources()) {
      auto start = std::chrono::steady_clock::now();
      const auto compiled = CompiledGrammar::compile(*make_grammar(source), vocabulary);
      compile_times.push_back(microseconds_since(start));
      Matcher matcher(*compiled);
      for (int step = 0; step < 80 && !matcher.is_terminated(); ++step) {
        start = std::chrono::steady_clock::now();
        if (!matcher.fill_mask(mask)) break;
        mask_times.push_back(microseconds_since(start));
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        auto token = static_cast<std::size_t>(random >> 33) % static_cast<std::size_t>(vocabulary->size());
        while ((static_cast<std::uint32_t>(mask[token / 32]) >> (token % 32) & 1) == 0)
          token = (token + 1) % static_cast<std::size_t>(vocabulary->size());
        start = std::chrono::steady_clock::now();
        matcher.accept(static_cast<TokenId>(token));
        accept_times.push_back(microseconds_since(start));
      }
    }
  }
  report(state, "compile", compile_times);
  report(state, "mask", mask_times);
  report(state, "accept", accept_times);
}
BENCHMARK(grammars)->Arg(32'000)->Arg(128'000)->Iterations(3)->Unit(benchmark::kMillisecond);

// Measures a request whose schema (size in KiB) is in the cache: the lookup and the first mask.
void known_schema(benchmark::State& state) {
  GrammarCache cache(made_up_vocabulary(128'000), 256u << 20);
  std::string text = R"({"type":"object","properties":{)";
  for (int i = 0; text.size() < static_cast<std::size_t>(state.range(0)) << 10; ++i)
    text += fmt::format(R"({}"name_{}":{{"type":"string","description":"what it is good for"}})",
                        i == 0 ? "" : ",", i);
  const GrammarSource source{GrammarKind::json_schema, text + "}}", {}};
  const auto compiled = cache.compile(source).value();
  std::vector<std::int32_t> mask(compiled->vocabulary().mask_words());
  benchmark::DoNotOptimize(Matcher(compiled).fill_mask(mask));
  for (auto _ : state) benchmark::DoNotOptimize(Matcher(cache.find(source)).fill_mask(mask));
}
BENCHMARK(known_schema)->Arg(1)->Arg(10)->Arg(100)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace octavo::grammar
