#include "engine/draft/speculative_config.h"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/quoted_text.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::string_view kTree = "speculative_token_tree";

// Reads the fields of a JSON object by name. A field that is null counts as missing.
class Fields {
 public:
  explicit Fields(const json::object& config) : config_(config) {}

  const json::value* find(std::string_view name) const {
    const json::value* value = config_.if_contains(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  template <class Number>
  Result<> number(std::string_view name, Number& out) const {
    const json::value* value = find(name);
    if (value == nullptr) return {};
    boost::system::error_code wrong;
    const Number number = value->to_number<Number>(wrong);
    if (wrong) return invalid(name, "must be {}", std::is_integral_v<Number> ? "an integer" : "a number");
    out = number;
    return {};
  }

  Result<> number(std::string_view name, std::optional<int>& out) const {
    int value = 0;
    if (find(name) == nullptr) return {};
    TRY_VOID(number(name, value));
    out = value;
    return {};
  }

  Result<> text(std::string_view name, std::string& out) const {
    const json::value* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) return invalid(name, "must be a string");
    out = value->get_string();
    return {};
  }

  Result<> know_only(std::string_view method, std::initializer_list<std::string_view> names) const {
    constexpr std::array<std::string_view, 3> kCommon = {"method", "num_speculative_tokens",
                                                         "num_speculative_tokens_per_batch_size"};
    for (const auto& [key, ignored] : config_) {
      const std::string_view name = key;
      if (std::ranges::find(kCommon, name) == kCommon.end() && std::ranges::find(names, name) == names.end())
        return invalid("speculative_config", "field \"{}\" is not supported with method {}", name, method);
    }
    return {};
  }

 private:
  const json::object& config_;
};

Result<NgramOptions> ngram_options(const Fields& fields, std::string_view) {
  TRY_VOID(fields.know_only("ngram", {"prompt_lookup_min", "prompt_lookup_max"}));
  std::optional<int> least, most;
  TRY_VOID(fields.number("prompt_lookup_min", least));
  TRY_VOID(fields.number("prompt_lookup_max", most));
  NgramOptions options;
  options.prompt_lookup_min = least.value_or(most.value_or(options.prompt_lookup_min));
  options.prompt_lookup_max = most.value_or(least.value_or(options.prompt_lookup_max));
  return options;
}

Result<SuffixOptions> suffix_options(const Fields& fields, std::string_view) {
  constexpr std::string_view kDepth = "suffix_decoding_max_tree_depth";
  constexpr std::string_view kRequests = "suffix_decoding_max_cached_requests";
  constexpr std::string_view kFactor = "suffix_decoding_max_spec_factor";
  constexpr std::string_view kLikely = "suffix_decoding_min_token_prob";
  TRY_VOID(fields.know_only("suffix", {kDepth, kRequests, kFactor, kLikely}));
  SuffixOptions options;
  TRY_VOID(fields.number(kDepth, options.max_tree_depth));
  TRY_VOID(fields.number(kRequests, options.max_cached_requests));
  TRY_VOID(fields.number(kFactor, options.max_spec_factor));
  TRY_VOID(fields.number(kLikely, options.min_token_prob));
  return options;
}

template <class Options>
Result<> read_model(const Fields& fields, Options& options) {
  TRY_VOID(fields.text("model", options.model));
  std::string method = options.drawn ? "probabilistic" : "greedy";
  TRY_VOID(fields.text("draft_sample_method", method));
  if (method != "greedy" && method != "probabilistic")
    return invalid("draft_sample_method", "must be \"greedy\" or \"probabilistic\", got {}",
                   quoted_text(method));
  options.drawn = method == "probabilistic";
  int ranks = 1;
  TRY_VOID(fields.number("draft_tensor_parallel_size", ranks));
  if (ranks != 1)
    return invalid("draft_tensor_parallel_size", "must be 1, because a draft model runs on one rank, got {}",
                   ranks);
  return {};
}

Result<DraftModelOptions> draft_model_options(const Fields& fields, std::string_view) {
  TRY_VOID(fields.know_only("draft_model", {"model", "quantization", "max_model_len", "draft_sample_method",
                                            "draft_tensor_parallel_size", kTree}));
  DraftModelOptions options;
  TRY_VOID(read_model(fields, options));
  TRY_VOID(fields.text("quantization", options.quantization));
  TRY_VOID(fields.number("max_model_len", options.max_model_len));
  return options;
}

template <HeadOptions::Kind kind>
Result<HeadOptions> head_options(const Fields& fields, std::string_view method) {
  TRY_VOID(fields.know_only(method, {"model", "draft_sample_method", "draft_tensor_parallel_size", kTree}));
  HeadOptions options{.kind = kind};
  TRY_VOID(read_model(fields, options));
  return options;
}

template <PositionHeadOptions::Kind kind>
Result<PositionHeadOptions> position_head_options(const Fields& fields, std::string_view method) {
  TRY_VOID(fields.know_only(method, {"model", "draft_sample_method", "draft_tensor_parallel_size", kTree}));
  PositionHeadOptions options{.kind = kind};
  TRY_VOID(read_model(fields, options));
  return options;
}

using Method = decltype(SpeculativeOptions::method);

template <auto read>
Result<Method> method_of(const Fields& fields, std::string_view name) {
  return read(fields, name);
}

struct MethodRow {
  std::string_view name;
  Result<Method> (*read)(const Fields&, std::string_view method);
  // returns the default of num_speculative_tokens; if the pointer is null, the user must set
  // num_speculative_tokens
  int (*tokens)(const Method&) = nullptr;
};

int suffix_tokens(const Method& method) {
  return std::min(std::get<SuffixOptions>(method).max_tree_depth, kDraftTokensMax);
}
int mtp_tokens(const Method&) { return 1; }

constexpr MethodRow kMethods[] = {
    {"ngram", method_of<ngram_options>},
    {"suffix", method_of<suffix_options>, suffix_tokens},
    {"draft_model", method_of<draft_model_options>},
    {"mtp", method_of<head_options<HeadOptions::Kind::mtp>>, mtp_tokens},
    {"eagle", method_of<head_options<HeadOptions::Kind::eagle>>},
    {"eagle3", method_of<head_options<HeadOptions::Kind::eagle3>>},
    {"medusa", method_of<position_head_options<PositionHeadOptions::Kind::medusa>>},
    {"mlp_speculator", method_of<position_head_options<PositionHeadOptions::Kind::mlp_speculator>>},
};

// vLLM also has a separate method name for each model family, such as deepseek_mtp.
Result<const MethodRow*> find_method(std::string_view name) {
  const std::string_view wanted = name.ends_with("_mtp") ? "mtp" : name;
  const auto found = std::ranges::find(kMethods, wanted, &MethodRow::name);
  if (found != std::end(kMethods)) return found;
  std::string names;
  for (const MethodRow& row : kMethods) {
    const bool last = &row == std::end(kMethods) - 1;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : last ? " or " : ", ", row.name);
  }
  return invalid("method", "must be {} (default: \"draft_model\" if `model` is given), got {}", names,
                 quoted_text(name));
}

// Checks that the tree is a chain of `count` draft tokens. The tree is in Python's syntax: [(0,), (0, 0),
// ..]
Result<> check_tree(const Fields& fields, int count) {
  std::string tree;
  TRY_VOID(fields.text(kTree, tree));
  if (tree.empty()) return {};
  std::string path = "0", chain = "[(0,)";
  for (int i = 1; i < std::min(count, kDraftTokensMax); ++i) {
    path += ",0";
    chain += fmt::format(",({})", path);
  }
  std::erase(tree, ' ');
  if (tree == chain + "]") return {};
  return field_failure(kTree, ErrorCode::unsupported,
                       "must be a chain of num_speculative_tokens ({}) draft tokens, [(0,), (0, 0), ..], "
                       "because trees are not supported, got {}",
                       count, quoted_text(tree));
}

// Reads [[from, to, tokens], ..]
Result<std::vector<TokensPerBatchSize>> tokens_per_batch_size(const Fields& fields) {
  constexpr std::string_view kName = "num_speculative_tokens_per_batch_size";
  std::vector<TokensPerBatchSize> ranges;
  const json::value* list = fields.find(kName);
  if (list == nullptr) return ranges;
  const auto wrong = [&] {
    return invalid(kName, "must be a list of [from, to, tokens], three integers each");
  };
  if (!list->is_array()) return wrong();
  for (const json::value& item : list->get_array()) {
    if (!item.is_array() || item.get_array().size() != 3) return wrong();
    std::array<int, 3> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      boost::system::error_code not_integer;
      numbers[i] = item.get_array()[i].to_number<int>(not_integer);
      if (not_integer) return wrong();
    }
    ranges.push_back({numbers[0], numbers[1], numbers[2]});
  }
  return ranges;
}

}  // namespace

Result<SpeculativeOptions> parse_speculative_config(std::string_view text) {
  boost::system::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("speculative_config", "must be a JSON object");
  const Fields fields(value.get_object());
  std::string method = fields.find("model") != nullptr ? "draft_model" : "";
  TRY_VOID(fields.text("method", method));

  SpeculativeOptions options;
  std::optional<int> count;
  TRY_VOID(fields.number("num_speculative_tokens", count));
  TRY(const MethodRow* const row, find_method(method));
  TRY(options.method, row->read(fields, method));
  if (!count && row->tokens != nullptr) count = row->tokens(options.method);
  if (!count) return invalid("num_speculative_tokens", "must be given");
  options.num_speculative_tokens = *count;
  TRY_VOID(check_tree(fields, *count));
  TRY(options.per_batch_size, tokens_per_batch_size(fields));
  TRY_VOID(validate(options));
  return options;
}

}  // namespace octavo
