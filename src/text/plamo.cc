#include "text/plamo.h"

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "text/gguf_tokenizer.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::size_t kTokensMax = 1 << 22;
constexpr double kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;  // values of GgufVocabulary::types

struct Row {
  std::string token;
  double score = 0;
  double type = kNormal;
};

// Special tokens get the type control, whatever the file says.
double type_of(std::string_view token, std::string_view type) {
  if (type == "BYTE") return kByte;
  if (type == "UNKNOWN") return kUnknown;
  return type == "CONTROL" || (token.starts_with("<|plamo:") && token.ends_with("|>")) ? kControl : kNormal;
}

std::optional<Row> row_of(std::string_view line) {
  boost::system::error_code bad;
  const json::value tree = json::parse(json::string_view(line.data(), line.size()), bad);
  const json::array* items = bad ? nullptr : tree.if_array();
  if (items == nullptr || items->size() < 2 || !items->at(0).is_string() || !items->at(1).is_number())
    return std::nullopt;
  const json::string* type = items->size() > 2 ? items->at(2).if_string() : nullptr;
  const std::string token(items->at(0).get_string());
  return Row{token, items->at(1).to_number<double>(),
             type_of(token, type != nullptr ? std::string_view(*type) : "")};
}

Result<std::vector<Row>> rows_of(std::string_view text) {
  std::vector<Row> rows;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    if (rows.size() == kTokensMax)
      return failure(ErrorCode::corrupt, "tokenizer.jsonl: the file has more than {} tokens", kTokensMax);
    std::optional<Row> row = row_of(line);
    if (!row)
      return failure(ErrorCode::corrupt, "tokenizer.jsonl: token {} must be a list of text, score and type",
                     rows.size());
    rows.push_back(*std::move(row));
  }
  return rows;
}

std::optional<std::int64_t> length_of(const json::object& config, std::string_view field) {
  const json::value* value = config.if_contains(field);
  const std::int64_t* length = value != nullptr ? value->if_int64() : nullptr;
  return length != nullptr && *length > 0 ? std::optional(*length) : std::nullopt;
}

}  // namespace

Result<Tokenizer> tokenizer_of_plamo(std::string_view text, const TokenizerConfig& config) {
  TRY(const std::vector<Row> rows, rows_of(text));
  boost::system::error_code bad;
  const json::value tree = json::parse(config.json, bad);
  const json::object fields = bad || !tree.is_object() ? json::object() : tree.get_object();
  const json::value* named = fields.if_contains("tokenizer_class");
  GgufVocabulary vocabulary{.model = named != nullptr && *named == "Plamo3Tokenizer" ? "plamo3" : "plamo2",
                            .pre = ""};
  for (const Row& row : rows) {
    vocabulary.tokens.push_back(row.token);
    vocabulary.scores.push_back(row.score);
    vocabulary.types.push_back(row.type);
  }
  const auto id = [&](std::string_view name) -> std::optional<std::int64_t> {
    const auto found = std::ranges::find(rows, config.special_token(name), &Row::token);
    if (found == rows.end()) return std::nullopt;
    return found - rows.begin();
  };
  vocabulary.special.bos = id("bos_token");
  vocabulary.special.eos = id("eos_token");
  vocabulary.special.unknown = id("unk_token");
  vocabulary.special.padding = id("pad_token");
  const auto flag = [&](std::string_view field) {
    const json::value* value = fields.if_contains(field);
    return value != nullptr && value->is_bool() && value->get_bool();
  };
  vocabulary.add_bos = flag("add_bos_token");
  vocabulary.add_eos = flag("add_eos_token");
  vocabulary.repeats = length_of(fields, "break_around_repeated_chars_threshold");
  vocabulary.blanks = length_of(fields, "break_around_consecutive_spaces_threshold");
  vocabulary.chat_templates = config.chat_templates;
  return tokenizer_of(vocabulary);
}

}  // namespace octavo
