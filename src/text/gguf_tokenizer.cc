#include "text/gguf_tokenizer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <ranges>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/base64.h"
#include "text/pre_tokenizers.h"
#include "text/utf8.h"

namespace octavo {
namespace {

namespace json = boost::json;

// Values of tokenizer.ggml.token_type.
constexpr double kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6;

constexpr std::size_t kTokenBytesMax = 4096;
constexpr const char* kBlank = "\u2581";  // SentencePiece's character for a space

json::string_view view(std::string_view text) { return {text.data(), text.size()}; }

bool is_plamo(const GgufVocabulary& v) { return v.model == "plamo2" || v.model == "plamo3"; }

double type_of(const GgufVocabulary& v, std::size_t id) { return v.types.empty() ? kNormal : v.types[id]; }

Result<> check_lists(const GgufVocabulary& v) {
  if (v.tokens.empty()) return failure(ErrorCode::corrupt, "tokenizer.ggml.tokens is missing or empty");
  const auto as_long = [&](std::string_view key, std::size_t size) -> Result<> {
    if (size == v.tokens.size()) return {};
    return failure(ErrorCode::corrupt, "tokenizer.ggml.{} has {} items, but the vocabulary has {} tokens",
                   key, size, v.tokens.size());
  };
  if (!v.types.empty()) TRY_VOID(as_long("token_type", v.types.size()));
  if (v.model == "llama" || v.model == "t5" || is_plamo(v)) TRY_VOID(as_long("scores", v.scores.size()));
  if (!std::ranges::all_of(v.scores, [](double score) { return std::isfinite(score); }))
    return failure(ErrorCode::corrupt, "tokenizer.ggml.scores: each score must be finite");
  for (std::size_t id = 0; id < v.tokens.size(); ++id) {
    if (v.tokens[id].size() > kTokenBytesMax)
      return failure(ErrorCode::corrupt, "tokenizer.ggml.tokens: token {} has {} bytes, but the limit is {}",
                     id, v.tokens[id].size(), kTokenBytesMax);
    if (const auto at = invalid_utf8_at(v.tokens[id]))
      return failure(ErrorCode::corrupt, "tokenizer.ggml.tokens: token {} is not UTF-8 at byte {}", id, *at);
  }
  return {};
}

std::string json_quoted(std::string_view text) { return json::serialize(view(text)); }

// Writes {"token": id, ..}, or [["token", score], ..] for unigrams. The long parts of tokenizer.json are
// written as text, because JSON trees need many times the memory.
Result<std::string> vocabulary_text(const GgufVocabulary& v, bool unigrams) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(v.tokens.size());
  std::string text = unigrams ? "[" : "{";
  for (std::size_t id = 0; id < v.tokens.size(); ++id) {
    if (!seen.insert(v.tokens[id]).second)
      return failure(ErrorCode::corrupt, "tokenizer.ggml.tokens: token {}, \"{}\", occurs twice", id,
                     v.tokens[id]);
    if (id > 0) text += ",";
    text += unigrams ? fmt::format("[{},{}]", json_quoted(v.tokens[id]), v.scores[id])
                     : fmt::format("{}:{}", json_quoted(v.tokens[id]), id);
  }
  return text + (unigrams ? "]" : "}");
}

// Writes [["first", "second"], ..].
class MergesText {
 public:
  void add(std::string_view first, std::string_view second) {
    text_ += fmt::format("{}[{},{}]", text_.size() > 1 ? "," : "", json_quoted(first), json_quoted(second));
  }
  std::string end() && { return std::move(text_) + "]"; }

 private:
  std::string text_ = "[";
};

// Tokens that are recognized in a text before it is split.
json::array added_tokens(const GgufVocabulary& v) {
  json::array added;
  for (std::size_t id = 0; id < v.tokens.size(); ++id) {
    const double type = type_of(v, id);
    if (type != kControl && type != kUnknown && type != kUserDefined) continue;
    added.push_back({{"id", id},
                     {"content", view(v.tokens[id])},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", type != kUserDefined}});
  }
  return added;
}

Result<std::string> listed_merges(const GgufVocabulary& v) {
  MergesText merges;
  for (const std::string_view merge : v.merges) {
    // No byte-level or SentencePiece token contains a space.
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size() || invalid_utf8_at(merge))
      return failure(ErrorCode::corrupt, "tokenizer.ggml.merges: \"{}\" is not a pair of tokens", merge);
    merges.add(merge.substr(0, space), merge.substr(space + 1));
  }
  return std::move(merges).end();
}

// SentencePiece first merges the two neighbours that make the token with the highest score. The equivalent
// list of merges has every way to make a token from two others, in descending order of scores.
std::string merges_of_scores(const GgufVocabulary& v) {
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t id = 0; id < v.tokens.size(); ++id) ids.emplace(v.tokens[id], id);
  std::vector<std::size_t> order;
  for (std::size_t id = 0; id < v.tokens.size(); ++id)
    if (type_of(v, id) == kNormal) order.push_back(id);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t id) { return v.scores[id]; });
  MergesText merges;
  for (const std::size_t id : order) {
    const std::string_view token = v.tokens[id];
    std::vector<std::pair<std::size_t, std::size_t>> ways;
    for (std::size_t at = 1; at < token.size(); ++at) {
      if ((static_cast<unsigned char>(token[at]) & 0xc0) == 0x80) continue;
      const auto left = ids.find(token.substr(0, at)), right = ids.find(token.substr(at));
      if (left != ids.end() && right != ids.end()) ways.emplace_back(left->second, right->second);
    }
    std::ranges::sort(ways);
    for (const auto& [left, right] : ways) merges.add(v.tokens[left], v.tokens[right]);
  }
  return std::move(merges).end();
}

// Returns tokenizer.json for byte-level BPE, without added tokens, vocabulary and merges.
json::object byte_level(const PreTokenizer& pre) {
  json::array steps;
  for (const std::string_view split : pre.splits)
    steps.push_back({{"type", "Split"},
                     {"pattern", {{"Regex", view(split)}}},
                     {"behavior", "Isolated"},
                     {"invert", false}});
  steps.push_back({{"type", "ByteLevel"},
                   {"add_prefix_space", false},
                   {"trim_offsets", true},
                   {"use_regex", pre.gpt2_words}});
  return {{"normalizer", pre.nfc ? json::value{{"type", "NFC"}} : json::value(nullptr)},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
          {"decoder",
           {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"ignore_merges", pre.ignore_merges}}}};
}

json::object sentence_piece(std::string_view unknown, bool prefix) {
  const json::object blanks = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kBlank}};
  json::array before, after = {{{"type", "Replace"}, {"pattern", {{"String", kBlank}}}, {"content", " "}},
                               {{"type", "ByteFallback"}},
                               {{"type", "Fuse"}}};
  if (prefix) {
    before.push_back({{"type", "Prepend"}, {"prepend", kBlank}});
    after.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  before.push_back(blanks);
  return {{"normalizer", {{"type", "Sequence"}, {"normalizers", std::move(before)}}},
          {"pre_tokenizer", nullptr},
          {"decoder", {{"type", "Sequence"}, {"decoders", std::move(after)}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", unknown.empty() ? json::value(nullptr) : json::value(view(unknown))},
            {"fuse_unk", true},
            {"byte_fallback", true}}}};
}

// In GGUF files of BERT, tokens at the start of a word begin with SentencePiece's space, and all others
// lack "##". Converts them to WordPiece.
std::vector<std::string> word_pieces(const GgufVocabulary& v) {
  constexpr std::string_view kBegin = kBlank;
  std::vector<std::string> tokens;
  for (std::size_t id = 0; id < v.tokens.size(); ++id) {
    const std::string_view token = v.tokens[id];
    const bool whole = type_of(v, id) == kControl, begins = token.starts_with(kBegin);
    tokens.push_back(whole    ? std::string(token)
                     : begins ? std::string(token.substr(kBegin.size()))
                              : fmt::format("##{}", token));
  }
  return tokens;
}

// Special tokens before a text, after it, and between two texts. second_type: token type of the second text
// and of the tokens after it.
struct Around {
  std::optional<std::int64_t> begin = {}, end = {}, between = {};
  int second_type = 0;
};

json::object template_of(const GgufVocabulary& v, const Around& around) {
  json::object tokens;
  const auto append = [&](json::array& to, const std::optional<std::int64_t>& id, int type) {
    if (!id) return;
    const json::string_view token = view(v.tokens[static_cast<std::size_t>(*id)]);
    tokens[token] = {{"id", token}, {"ids", json::array{*id}}, {"tokens", json::array{token}}};
    to.push_back(json::value{{"SpecialToken", {{"id", token}, {"type_id", type}}}});
  };
  const auto text = [](const char* which, int type) {
    return json::value{{"Sequence", {{"id", which}, {"type_id", type}}}};
  };
  json::array single;
  append(single, around.begin, 0);
  single.push_back(text("A", 0));
  append(single, around.end, 0);
  json::array pair = single;
  append(pair, around.between, 0);
  pair.push_back(text("B", around.second_type));
  append(pair, around.end, around.second_type);
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", std::move(tokens)}};
}

// Returns tokenizer.json for WordPiece, without added tokens and vocabulary.
Result<json::object> word_piece(const GgufVocabulary& v) {
  const auto found = [&](std::optional<std::int64_t> id, std::string_view token) -> std::int64_t {
    return id ? *id : std::ranges::find(v.tokens, token) - v.tokens.begin();
  };
  const std::int64_t classifier = found(v.special.classifier, "[CLS]"),
                     separator = found(v.special.separator, "[SEP]"),
                     unknown = found(v.special.unknown, "[UNK]");
  for (const std::int64_t id : {classifier, separator, unknown})
    if (id < 0 || id >= std::ssize(v.tokens))
      return failure(
          ErrorCode::corrupt,
          "tokenizer.ggml: the id of the CLS, SEP or UNK token must be below the number of tokens, {}",
          v.tokens.size());
  const auto text = [&](std::int64_t id) { return v.tokens[static_cast<std::size_t>(id)]; };
  const bool lowercase = v.lowercase.value_or(true);
  return json::object{
      {"normalizer",
       {{"type", "BertNormalizer"},
        {"clean_text", true},
        {"handle_chinese_chars", true},
        {"strip_accents", v.strip_accents.value_or(lowercase)},
        {"lowercase", lowercase}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"post_processor", template_of(v, {.begin = classifier, .end = separator, .second_type = 1})},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", view(text(unknown))},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100}}}};
}

// Returns tokenizer.json for T5 or XLM-R, without added tokens and vocabulary. Only XLM-R has a begin
// token.
Result<json::object> unigram(const GgufVocabulary& v) {
  const auto missing = [](std::string_view key) {
    return failure(ErrorCode::corrupt, "tokenizer.ggml.{} is missing", key);
  };
  if (!v.special.unknown) return missing("unknown_token_id");
  Around around;
  if (v.add_bos.value_or(false)) {
    if (!v.special.bos) return missing("bos_token_id");
    around.begin = v.special.bos;
  }
  if (v.add_eos.value_or(true)) {
    if (!v.special.eos) return missing("eos_token_id");
    around.end = v.special.eos;
  }
  if (v.add_separator.value_or(around.begin.has_value()))
    around.between = v.special.separator ? v.special.separator : v.special.eos;
  const json::object blanks = {{"type", "Metaspace"},
                               {"replacement", kBlank},
                               {"prepend_scheme", v.add_space_prefix.value_or(true) ? "always" : "never"},
                               {"split", true}};
  json::array steps;
  if (v.single_spaces.value_or(false)) steps.push_back(json::object{{"type", "WhitespaceSplit"}});
  steps.push_back(blanks);
  return json::object{
      {"normalizer", v.charsmap.empty() ? json::value(nullptr)
                                        : json::value{{"type", "Precompiled"},
                                                      {"precompiled_charsmap", encode_base64(v.charsmap)}}},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
      {"post_processor", template_of(v, around)},
      {"decoder", blanks},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", *v.special.unknown},
        {"byte_fallback", std::ranges::count(v.types, kByte) > 0}}}};
}

// Returns tokenizer.json for PLaMo, without added tokens and vocabulary. The class in tokenizer_config.json
// selects the splitter (bridge/src/plamo.rs).
json::object plamo(const GgufVocabulary& v) {
  return {{"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"decoder",
           {{"type", "Sequence"}, {"decoders", json::array{{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}}},
          {"model", {{"type", "Unigram"}, {"unk_id", *v.special.unknown}, {"byte_fallback", true}}}};
}

// Returns the contents of tokenizer_config.json.
TokenizerConfig config_of(const GgufVocabulary& v) {
  TokenizerConfig config;
  json::object object;
  if (is_plamo(v)) object["tokenizer_class"] = v.model == "plamo2" ? "Plamo2Tokenizer" : "Plamo3Tokenizer";
  if (v.repeats) object["break_around_repeated_chars_threshold"] = *v.repeats;
  if (v.blanks) object["break_around_consecutive_spaces_threshold"] = *v.blanks;
  for (const auto& [name, id] :
       {std::pair("bos_token", v.special.bos), std::pair("eos_token", v.special.eos),
        std::pair("unk_token", v.special.unknown), std::pair("pad_token", v.special.padding)}) {
    if (!id) continue;
    // An ordinary token such as "!" may have the role of padding or unknown text. It is not special.
    const std::string_view role = name;
    const bool ends = role == "bos_token" || role == "eos_token";
    if (!ends && type_of(v, static_cast<std::size_t>(*id)) == kNormal) continue;
    const std::string_view token = v.tokens[static_cast<std::size_t>(*id)];
    object[name] = view(token);
    config.special_tokens.push_back({name, std::string(token)});
  }
  config.json = json::serialize(object);
  config.chat_templates = v.chat_templates;
  return config;
}

}  // namespace

Result<Tokenizer> tokenizer_of(const GgufVocabulary& given) {
  GgufVocabulary v = given;
  // Gemma 4 has SentencePiece tokens, but a list of merges in place of scores.
  const bool scored = v.model == "llama", pieces = scored || v.model == "gemma4", words = v.model == "bert",
             unigrams = v.model == "t5", bytes = v.model == "gpt2", of_plamo = is_plamo(v);
  if (!pieces && !words && !unigrams && !bytes && !of_plamo)
    return field_failure("tokenizer.ggml.model", ErrorCode::unsupported,
                         "tokenizer.ggml.model is \"{}\", which is not supported: must be bert, gpt2, llama, "
                         "gemma4, plamo2, plamo3 or t5",
                         v.model);
  TRY_VOID(check_lists(v));
  const std::vector<std::string> restored = words ? word_pieces(v) : std::vector<std::string>();
  for (std::size_t id = 0; id < restored.size(); ++id) v.tokens[id] = restored[id];
  const PreTokenizer* pre = find_pre_tokenizer(v.pre.empty() ? "default" : v.pre);
  if (bytes && pre == nullptr)
    return field_failure("tokenizer.ggml.pre", ErrorCode::unsupported,
                         "tokenizer.ggml.pre is \"{}\", which is not supported: must be one of {}", v.pre,
                         fmt::join(pre_tokenizers() | std::views::transform(&PreTokenizer::name), ", "));
  if ((scored || of_plamo) && !v.special.unknown) v.special.unknown = 0;
  if ((scored || of_plamo) && v.tokens.size() > 2) {
    if (!v.special.bos) v.special.bos = 1;
    if (!v.special.eos) v.special.eos = 2;
  }
  if (unigrams && !v.special.unknown)
    if (const auto found = std::ranges::find(v.types, kUnknown); found != v.types.end())
      v.special.unknown = found - v.types.begin();
  if (unigrams && !v.special.eos && v.tokens.size() > 1) v.special.eos = 1;
  for (const auto& id :
       {v.special.bos, v.special.eos, v.special.unknown, v.special.padding, v.special.separator})
    if (id && (*id < 0 || *id >= std::ssize(v.tokens)))
      return failure(ErrorCode::corrupt,
                     "tokenizer.ggml: the id of the special token is {}, but the vocabulary has {} tokens",
                     *id, v.tokens.size());
  json::object tree;
  if (words) {
    TRY(tree, word_piece(v));
  } else if (unigrams) {
    TRY(tree, unigram(v));
  } else if (of_plamo) {
    tree = plamo(v);
  } else {
    const std::string_view unknown =
        v.special.unknown ? v.tokens[static_cast<std::size_t>(*v.special.unknown)] : "";
    tree = pieces ? sentence_piece(unknown, v.add_space_prefix.value_or(scored)) : byte_level(*pre);
  }
  if (pieces || bytes || of_plamo) {
    Around around{.second_type = 1};
    if (v.add_bos.value_or(pieces || (bytes && pre->add_bos))) around.begin = around.between = v.special.bos;
    if (v.add_eos.value_or(false)) around.end = v.special.eos;
    tree["post_processor"] = template_of(v, around);
  }
  tree["version"] = "1.0";
  tree["added_tokens"] = added_tokens(v);
  std::string model = json::serialize(tree["model"]);
  tree.erase("model");
  std::string text = json::serialize(tree);
  TRY(const std::string ids, vocabulary_text(v, unigrams || of_plamo));
  text.back() = model.back() = ',';  // Replaces the last '}' of both objects, because the next line adds
                                     // members.
  text += fmt::format("\"model\":{}\"vocab\":{}", model, ids);
  if (pieces || bytes) {
    TRY(const std::string merges, scored ? merges_of_scores(v) : listed_merges(v));
    text += fmt::format(",\"merges\":{}", merges);
  }
  return Tokenizer::parse(text + "}}", config_of(v));
}

}  // namespace octavo
