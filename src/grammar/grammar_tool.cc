// Runs grammars by commands, for test scripts in tools/grammar. Each line of stdin is a JSON request, each
// line of stdout its response.
//
//   grammar_tool vocabulary.json
//
// The vocabulary is {"tokens": [hex bytes ...], "specials": [names ...]}. The first special token is the
// end-of-text token. Requests and their responses:
//
//   {"op":"new","kind":"regex","text":"a+","whitespace":0}
//       {"ok":true,"us":..} or {"error":".."}
//   {"op":"mask"}
//       {"us":..,"mask":hex of little-endian words} or {"error":".."}
//   {"op":"accept","token":5}
//       {"ok":true,"us":..,"end":false}
//   {"op":"matches","text":"aa"}
//       {"ok":true}: a whole text, from the beginning
//   {"op":"walk","tokens":[5,7]}
//       {"masks":[us ..],"steps":[us ..],"late":1,"accepts":[us ..],"end":true}
//   {"op":"finish"}
//       {"text":hex}: bytes that end the text
//   {"op":"rollback","count":2}
//   {"op":"jump"}
//
// `walk` stops at the first token that is not allowed. end: all tokens were allowed and the text may end.
// steps: for each mask, the time of try_fill_mask(). late: number of masks that try_fill_mask() did not
// return. Times are CPU times in us.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "grammar/decimal.h"
#include "grammar/grammar_cache.h"
#include "grammar/json_value.h"
#include "grammar/matcher.h"

namespace octavo::grammar {
namespace {

std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const auto digit = [&](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    out.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    hex.push_back(kDigits[static_cast<unsigned char>(c) / 16]);
    hex.push_back(kDigits[static_cast<unsigned char>(c) % 16]);
  }
  return hex;
}

Result<std::shared_ptr<const Vocabulary>> load(const char* path) {
  std::ifstream file(path);
  // Parses the file without parse_json(), whose limits are too low for a list of all tokens.
  std::stringstream buffer;
  buffer << file.rdbuf();
  const std::string text = buffer.str();
  std::vector<std::string> tokens;
  std::vector<TokenId> special;
  const std::size_t split = text.find("\"specials\"");
  for (std::size_t at = text.find('['); at < split;) {
    const std::size_t open = text.find('"', at), close = text.find('"', open + 1);
    if (close >= split) break;
    tokens.push_back(from_hex(std::string_view(text).substr(open + 1, close - open - 1)));
    at = close + 1;
  }
  for (std::size_t at = text.find('[', split);;) {
    const std::size_t open = text.find('"', at);
    if (open == std::string::npos) break;
    const std::size_t close = text.find('"', open + 1);
    special.push_back(static_cast<TokenId>(tokens.size()));
    tokens.push_back(text.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return Vocabulary::make(std::move(tokens), special, {special.at(0)});
}

template <class Action>
double timed(Action&& action) {
  const auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
  };
  const double start = now();
  action();
  return now() - start;
}

class Session {
 public:
  explicit Session(std::shared_ptr<const Vocabulary> vocabulary)
      : vocabulary_(std::move(vocabulary)), mask_(vocabulary_->mask_words()) {}

  std::string answer(const std::string& line) {
    const auto request = parse_json(line, "request");
    if (!request) return error(request.error());
    const std::string op = text(*request, "op");
    if (op == "new") return start(*request);
    if (!matcher_) return R"({"error":"no grammar"})";
    if (op == "mask") return fill();
    if (op == "walk") return walk(*request->find("tokens"));
    if (op == "matches") return fmt::format(R"({{"ok":{}}})", matches(text(*request, "text")));
    if (op == "finish") return finish();
    if (op == "jump") return fmt::format(R"({{"text":"{}"}})", json_escape(matcher_->jump_forward()));
    if (op == "rollback") {
      matcher_->rollback(static_cast<std::size_t>(number(*request, "count")));
      return R"({"ok":true})";
    }
    bool ok = false;
    const double us = timed([&] { ok = matcher_->accept(static_cast<TokenId>(number(*request, "token"))); });
    return fmt::format(R"({{"ok":{},"us":{:.2f},"end":{}}})", ok, us, matcher_->is_terminated());
  }

 private:
  static std::string text(const Json& object, std::string_view key) {
    const Json* value = object.find(key);
    return value ? value->text : "";
  }
  static int number(const Json& object, std::string_view key) {
    const auto value = Decimal::parse(text(object, key));
    return value ? static_cast<int>(value->count().value_or(0)) : 0;
  }
  static std::string error(const Error& e) {
    return fmt::format(R"({{"error":"{}"}})", json_escape(e.message));
  }

  std::string start(const Json& request) {
    constexpr std::string_view kKinds[] = {"json_schema", "json_object", "regex",
                                           "ebnf",        "choice",      "structural_tag"};
    GrammarSource source;
    source.text = text(request, "text");
    source.kind =
        static_cast<GrammarKind>(std::ranges::find(kKinds, text(request, "kind")) - std::begin(kKinds));
    if (number(request, "whitespace") == 0) source.options.whitespace = JsonOptions::Whitespace::none;
    if (const Json* refuse = request.find("refuse_unknown")) source.options.refuse_unknown = refuse->boolean;
    if (const Json* refuse = request.find("refuse_unique")) source.options.refuse_unique = refuse->boolean;
    if (const Json* any = request.find("any_order")) source.options.any_order = any->boolean;
    if (const Json* strict = request.find("strict")) source.options.strict = strict->boolean;
    matcher_.reset();
    Result<std::shared_ptr<const CompiledGrammar>> compiled = failure(ErrorCode::internal, "");
    const double us = timed([&] {
      auto grammar = make_grammar(source);
      if (grammar)
        compiled = CompiledGrammar::compile(*std::move(grammar), vocabulary_);
      else
        compiled = std::unexpected(grammar.error());
    });
    if (!compiled) return error(compiled.error());
    matcher_.emplace(*compiled);
    return fmt::format(R"({{"ok":true,"us":{:.2f},"states":{}}})", us, (*compiled)->state_count());
  }

  TokenId byte_token(char c) const {
    TokenId token = 0;
    while (token < vocabulary_->size() && vocabulary_->bytes(token) != std::string_view(&c, 1)) ++token;
    return token;
  }

  bool matches(const std::string& whole) const {
    Matcher matcher = *matcher_;
    matcher.rollback(matcher.accepted());
    for (const char c : whole)
      if (!matcher.accept(byte_token(c))) return false;
    return matcher.can_terminate();
  }

  // Searches for bytes that end the text, on copies of the matcher. Prefers closing brackets and quotes.
  std::string finish() {
    constexpr std::string_view kClosing = "\"}]),10a-e";
    for (std::uint32_t round = 0; round < 8; ++round) {
      Matcher matcher = *matcher_;
      std::string out;
      for (std::uint32_t step = 0; step < 400; ++step) {
        if (matcher.can_terminate()) return fmt::format(R"({{"text":"{}"}})", to_hex(out));
        random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
        const auto first = static_cast<std::uint32_t>(random_ >> 33);
        bool found = false;
        for (std::size_t i = 0; i < kClosing.size() && first % 16 >= round && !found; ++i)
          if ((found = matcher.accept(byte_token(kClosing[i])))) out.push_back(kClosing[i]);
        for (std::uint32_t i = 0; i < 256 && !found; ++i) {
          const auto byte = static_cast<char>((first + i) % 256);
          if ((found = matcher.accept(byte_token(byte)))) out.push_back(byte);
        }
        if (!found) break;
      }
    }
    return R"({"error":"no end was found"})";
  }

  std::string walk(const Json& tokens) {
    std::vector<double> masks, steps, accepts;
    int late = 0;
    for (const Json& item : tokens.items) {
      const auto token = static_cast<TokenId>(Decimal::parse(item.text)->count().value_or(0));
      bool ready = false;
      steps.push_back(timed([&] { ready = matcher_->try_fill_mask(mask_).has_value(); }));
      masks.push_back(steps.back());
      late += !ready;
      if (!ready) masks.back() += timed([&] { (void)matcher_->fill_mask(mask_); });
      if ((static_cast<std::uint32_t>(mask_[static_cast<std::size_t>(token) / 32]) >> (token % 32) & 1) == 0)
        break;
      accepts.push_back(timed([&] { matcher_->accept(token); }));
    }
    const bool end = accepts.size() == tokens.items.size() && matcher_->can_terminate();
    return fmt::format(R"({{"masks":[{:.2f}],"steps":[{:.2f}],"late":{},"accepts":[{:.2f}],"end":{}}})",
                       fmt::join(masks, ","), fmt::join(steps, ","), late, fmt::join(accepts, ","), end);
  }

  std::string fill() {
    Result<void> filled;
    const double us = timed([&] { filled = matcher_->fill_mask(mask_); });
    if (!filled) return error(filled.error());
    const std::string_view bytes(reinterpret_cast<const char*>(mask_.data()),
                                 mask_.size() * sizeof(mask_[0]));
    return fmt::format(R"({{"us":{:.2f},"mask":"{}"}})", us, to_hex(bytes));
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<std::int32_t> mask_;
  std::optional<Matcher> matcher_;
  std::uint64_t random_ = 42;
};

}  // namespace
}  // namespace octavo::grammar

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const auto vocabulary = octavo::grammar::load(arguments[1]);
  if (!vocabulary) {
    fmt::print(stderr, "{}\n", vocabulary.error().message);
    return 2;
  }
  octavo::grammar::GrammarCache(*vocabulary, 1u << 20).warm_up();  // the server does the same
  octavo::grammar::Session session(*vocabulary);
  for (std::string line; std::getline(std::cin, line);) std::cout << session.answer(line) << std::endl;
}
