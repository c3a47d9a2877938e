#include "engine/draft/options.h"

namespace octavo {
namespace {

Result<> check(const NgramOptions& o) {
  if (o.prompt_lookup_min < 1)
    return invalid("prompt_lookup_min", "must be at least 1, got {}", o.prompt_lookup_min);
  if (o.prompt_lookup_max < o.prompt_lookup_min)
    return invalid("prompt_lookup_max", "must be at least prompt_lookup_min ({}), got {}",
                   o.prompt_lookup_min, o.prompt_lookup_max);
  return {};
}

Result<> check(const SuffixOptions& o) {
  constexpr int kDepthMax = 1024;
  constexpr int kRequestsMax = 10'000'000;
  if (o.max_tree_depth < 2 || o.max_tree_depth > kDepthMax)
    return invalid("suffix_decoding_max_tree_depth", "must be from 2 to {}, got {}", kDepthMax,
                   o.max_tree_depth);
  if (o.max_cached_requests < 0 || o.max_cached_requests > kRequestsMax)
    return invalid("suffix_decoding_max_cached_requests", "must be from 0 to {}, got {}", kRequestsMax,
                   o.max_cached_requests);
  if (!(o.max_spec_factor >= 0 && o.max_spec_factor <= 1000))
    return invalid("suffix_decoding_max_spec_factor", "must be from 0 to 1000, got {}", o.max_spec_factor);
  if (!(o.min_token_prob >= 0 && o.min_token_prob <= 1))
    return invalid("suffix_decoding_min_token_prob", "must be from 0 to 1, got {}", o.min_token_prob);
  return {};
}

Result<> check(const DraftModelOptions& o) {
  if (o.model.empty()) return invalid("model", "must be given for draft_model");
  if (o.max_model_len && *o.max_model_len < 2)
    return invalid("max_model_len", "must be at least 2, got {}", *o.max_model_len);
  return {};
}

Result<> check(const HeadOptions& o) {
  if (o.model.empty() && o.kind != HeadOptions::Kind::mtp)
    return invalid("model", "must be given: the folder of the EAGLE head");
  return {};
}

Result<> check(const PositionHeadOptions& o) {
  if (o.model.empty()) return invalid("model", "must be given: the folder of the heads");
  return {};
}

}  // namespace

Result<> validate(const SpeculativeOptions& options) {
  if (options.num_speculative_tokens < 1 || options.num_speculative_tokens > kDraftTokensMax)
    return invalid("num_speculative_tokens", "must be from 1 to {}, got {}", kDraftTokensMax,
                   options.num_speculative_tokens);
  int last = 0;
  for (const auto& [from, to, tokens] : options.per_batch_size) {
    constexpr std::string_view kField = "num_speculative_tokens_per_batch_size";
    if (from <= last || to < from)
      return invalid(
          kField,
          "ranges of batch sizes must begin at 1 or more, ascend and not overlap, got {} to {} after {}",
          from, to, last);
    if (tokens < 0 || tokens > options.num_speculative_tokens)
      return invalid(kField, "must have from 0 to num_speculative_tokens ({}) tokens, got {}",
                     options.num_speculative_tokens, tokens);
    last = to;
  }
  return std::visit([](const auto& method) { return check(method); }, options.method);
}

}  // namespace octavo
