#include "serve/openai/prompt_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "base/base64.h"
#include "openai/request_fields.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

constexpr std::string_view kIds = "prompt_logprob_token_ids";
constexpr TokenId kPadding = -1;

Result<std::vector<TokenId>> read_row(const json::array& items, std::size_t row, int vocab_size) {
  std::vector<TokenId> ids;
  for (const json::value& item : items) {
    TRY(const std::int64_t id, integer_in(item, fmt::format("{}[{}]", kIds, row), kPadding, vocab_size - 1));
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

}  // namespace

Result<> read_prompt_scores(Fields& fields, const RequestRules& rules, LogprobRequest& out) {
  TRY_VOID(fields.integer("prompt_logprob_start", out.prompt_start, 0, rules.max_model_len));
  TRY(const json::array* rows, fields.array(kIds));
  if (!rows && out.prompt_start > 0) return invalid("prompt_logprob_start", "needs {}", kIds);
  if (!rows) return {};
  if (out.prompt && *out.prompt != 0)
    return invalid("prompt_logprobs", "must be 0 with {}, got {}: send two requests", kIds, *out.prompt);
  const auto rows_max = static_cast<std::size_t>(std::max(rules.max_model_len - 1, 0));
  if (rows->empty() || rows->size() > rows_max)
    return invalid(kIds, "must have 1 to {} rows (max_model_len - 1), got {}", rows_max, rows->size());
  std::size_t columns = 0;
  for (const json::value& row : *rows) {
    if (!row.is_array()) return invalid(kIds, "must be a list of lists of token ids");
    columns = std::max(columns, row.get_array().size());
  }
  const int most = rules.limits.max_logprobs < 0 ? rules.limits.vocab_size : rules.limits.max_logprobs;
  if (columns == 0 || columns > static_cast<std::size_t>(most))
    return invalid(kIds, "each row must have 1 to {} token ids (--max-logprobs), got {}", most, columns);
  for (std::size_t i = 0; i < rows->size(); ++i) {
    TRY(std::vector<TokenId> ids, read_row((*rows)[i].get_array(), i, rules.limits.vocab_size));
    ids.resize(columns, kPadding);
    out.prompt_token_ids.push_back(std::move(ids));
  }
  return {};
}

std::string prompt_scores_base64(std::span<const TokenLogprobs> rows) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::size_t kPrefixBytes = 10, kAlignment = 64;  // magic, version and the header's size
  while (!rows.empty() && rows.front().top.empty()) rows = rows.subspan(1);
  const std::size_t columns = rows.empty() ? 0 : rows.front().top.size();
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows.size(), columns);
  header.append(kAlignment - (kPrefixBytes + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() % 256);
  file += static_cast<char>(header.size() / 256);
  file += header;
  for (const TokenLogprobs& row : rows)
    for (const auto& [id, logprob] : row.top) {
      const auto bytes = std::bit_cast<std::array<char, sizeof logprob>>(logprob);
      file.append(bytes.data(), bytes.size());
    }
  return encode_base64(file);
}

}  // namespace octavo::openai
