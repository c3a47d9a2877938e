// Writes keys and values to KV blocks, and computes attention of queries to them. Blocks have the exchange
// layout (kv_exchange.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/host_device.h"
#include "kernels/kv_exchange.h"
#include "kernels/kv_quant.h"
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {
namespace {

enum KeyOrValue : std::int64_t { kKey = 0, kValue = 1 };

std::byte* block_address(const KvLayer& cache, std::int64_t block) {
  CHECK(block >= 0 && block < cache.blocks, "block {} of {}", block, cache.blocks);
  return cache.data + block * cache.stride_bytes;
}

std::int64_t index_of(const KvSpec& spec, KeyOrValue which, std::int64_t head, std::int64_t token) {
  const std::int64_t kind = spec.values_in_keys > 0 ? kKey : which;
  return (kind * spec.kv_heads + head) * spec.block_size + token;
}
std::int64_t element_of(const KvSpec& spec, KeyOrValue which, std::int64_t head, std::int64_t token) {
  return index_of(spec, which, head, token) * spec.head_dim;
}
std::int64_t vectors_of(const KvSpec& spec) {
  return kv_exchange_parts(spec) * spec.kv_heads * spec.block_size;
}

float* scale_of(std::byte* block, const KvSpec& spec, KeyOrValue which, std::int64_t head,
                std::int64_t token) {
  return reinterpret_cast<float*>(block + vectors_of(spec) * spec.vector_bytes()) +
         index_of(spec, which, head, token);
}

void store_codes(std::byte* block, const KvSpec& spec, KeyOrValue which, std::int64_t head,
                 std::int64_t token, std::span<const double> values) {
  const std::vector<float> rotated = rotated_kv(values);
  const float scale = *scale_of(block, spec, which, head, token) = kv_scale(std::span<const float>(rotated));
  std::byte* const bytes = block + element_of(spec, which, head, token) / 2;
  for (std::size_t i = 0; i < rotated.size() / 2; ++i)
    bytes[i] = std::byte(kv_code(rotated[2 * i], scale) | kv_code(rotated[2 * i + 1], scale) << 4);
}

void store_vector(std::byte* block, const KvSpec& spec, KeyOrValue which, std::int64_t head,
                  std::int64_t token, std::span<const double> values) {
  if (spec.rotated()) return store_codes(block, spec, which, head, token, values);
  const std::int64_t first = element_of(spec, which, head, token);
  float scale = 1;
  if (spec.scaled()) scale = *scale_of(block, spec, which, head, token) = kv_scale(values);
  for (std::int64_t d = 0; d < std::ssize(values); ++d) {
    const double value = values[static_cast<std::size_t>(d)];
    if (spec.dtype == DType::i8) {
      reinterpret_cast<std::int8_t*>(block)[first + d] = kv_quantized(static_cast<float>(value), scale);
    } else {
      store(block, spec.dtype, first + d, value);
    }
  }
}

struct CachedVector {
  const std::byte* block;
  DType dtype;
  std::int64_t first;
  double scale;
  double operator[](std::int64_t d) const {
    if (dtype == DType::i8) return scale * reinterpret_cast<const std::int8_t*>(block)[first + d];
    if (dtype == DType::i4) {
      const auto codes = std::to_integer<unsigned>(block[(first + d) / 2]);
      return scale * kv_level(d % 2 == 0 ? codes & 15 : codes >> 4);
    }
    return load(block, dtype, first + d);
  }
};

CachedVector vector_of(std::byte* block, const KvSpec& spec, KeyOrValue which, std::int64_t head,
                       std::int64_t token) {
  const double scale = spec.scaled() ? *scale_of(block, spec, which, head, token) : 1;
  return {block, spec.dtype, element_of(spec, which, head, token), scale};
}

void rotate(const Rope& rope, std::int64_t token, std::vector<double>& head) {
  const std::int64_t half = rope.rotary_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double c = at(rope.cos, {token, i});
    const double s = at(rope.sin, {token, i});
    double& a = head[static_cast<std::size_t>(rope.interleaved ? 2 * i : i)];
    double& b = head[static_cast<std::size_t>(rope.interleaved ? 2 * i + 1 : i + half)];
    const double rotated = a * c - b * s;
    b = b * c + a * s;
    a = rotated;
  }
}

std::vector<double> normalized_heads(const Norm& norm, bool whole_row, std::vector<double> row,
                                     std::int64_t dim) {
  if (norm.kind == NormKind::none) return row;
  if (whole_row) {
    normalize(norm, row);
    return row;
  }
  const bool weight_per_head = norm.weight.rank == 2;
  for (std::int64_t first = 0; first < std::ssize(row); first += dim) {
    std::vector<double> head(row.begin() + first, row.begin() + first + dim);
    normalize(norm, head, weight_per_head ? first : 0);
    std::copy(head.begin(), head.end(), row.begin() + first);
  }
  return row;
}

// Returns a head of a query as products with keys of the cache need it.
std::vector<double> query_of(const View& q, const KvSpec& spec, std::int64_t query, std::int64_t head) {
  std::vector<double> values;
  for (std::int64_t d = 0; d < spec.score_dim(); ++d) values.push_back(at(q, {query, head, d}));
  if (!spec.rotated()) return values;
  // Rotated queries are rounded to the format of the activations.
  const std::vector<float> rotated = rotated_kv(values);
  for (std::size_t d = 0; d < values.size(); ++d) {
    float rounded;
    store(&rounded, q.dtype, 0, rotated[d]);
    values[d] = load(&rounded, q.dtype, 0);
  }
  return values;
}

// One query of one head, at `position`. It sees the tokens [begin, end) of a sequence.
struct HeadQuery {
  const AttentionArgs& args;
  std::int64_t sequence, query, position, head, begin, end;

  CachedVector cached(KeyOrValue which, std::int64_t token) const {
    const auto& plan = static_cast<const ReferencePlan&>(args.plan);
    const KvSpec& spec = args.cache.spec;
    const auto entry = static_cast<std::size_t>(sequence * plan.table_stride + token / spec.block_size);
    const std::int64_t group = args.q.size(1) / spec.kv_heads;
    return vector_of(block_address(args.cache, plan.block_tables[entry]), spec, which, head / group,
                     token % spec.block_size);
  }
  std::int64_t kv_head() const { return head / (args.q.size(1) / args.cache.spec.kv_heads); }
  double fixed_score(std::int64_t i) const {
    double sum = 0;
    for (std::int64_t d = 0; d < args.cache.spec.score_dim(); ++d)
      sum += at(args.q, {query, head, d}) * at(args.fixed_keys, {i, kv_head(), d});
    return sum * args.scale;
  }
  bool sees(std::int64_t token) const {
    if (!args.chosen) return true;
    const bool by_head = args.chosen.rank == 3;
    const auto* const chosen =
        args.chosen.row<std::int32_t>(query) + (by_head ? kv_head() * args.chosen.stride[1] : 0);
    return std::ranges::binary_search(
        std::span(chosen, static_cast<std::size_t>(args.chosen.size(by_head ? 2 : 1))),
        token / args.chosen_tokens);
  }
  double bias(std::int64_t distance) const {
    const std::int64_t most = args.distance_bias.size(1) / 2;
    return at(args.distance_bias, {head, most + std::clamp(distance, -most, most)});
  }
  double score(const std::vector<double>& q, std::int64_t token) const {
    const CachedVector key = cached(kKey, token);
    double sum = 0;
    for (std::size_t d = 0; d < q.size(); ++d) sum += q[d] * key[static_cast<std::int64_t>(d)];
    sum *= args.scale;
    if (args.slopes) sum += at(args.slopes, {head}) * static_cast<double>(token - end + 1);
    if (args.distance_bias) sum += bias(token - position);
    return args.soft_cap > 0 ? args.soft_cap * std::tanh(sum / args.soft_cap) : sum;
  }

  void attend() const {
    const std::int64_t value_dim = args.cache.spec.value_dim();
    std::vector<double> scores;
    const std::vector<double> q = query_of(args.q, args.cache.spec, query, head);
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t t = begin; t < end; ++t) {
      scores.push_back(sees(t) ? score(q, t) : -std::numeric_limits<double>::infinity());
      largest = std::max(largest, scores.back());
    }
    const std::int64_t fixed = args.fixed_keys ? args.fixed_keys.size(0) : 0;
    std::vector<double> fixed_scores;
    for (std::int64_t i = 0; i < fixed; ++i) {
      fixed_scores.push_back(fixed_score(i));
      largest = std::max(largest, fixed_scores.back());
    }
    double sum = 0;
    for (double& weight : scores) sum += weight = std::exp(weight - largest);
    for (double& weight : fixed_scores) sum += weight = std::exp(weight - largest);
    if (args.sinks) sum += std::exp(at(args.sinks, {head}) - largest);
    std::vector<double> mixed(static_cast<std::size_t>(value_dim));
    for (std::int64_t t = begin; t < end; ++t) {
      if (!sees(t)) continue;
      const CachedVector value = cached(kValue, t);
      for (std::int64_t d = 0; d < value_dim; ++d)
        mixed[static_cast<std::size_t>(d)] += scores[static_cast<std::size_t>(t - begin)] * value[d];
    }
    if (args.cache.spec.rotated()) std::ranges::copy(rotated_kv(mixed), mixed.begin());
    for (std::int64_t i = 0; i < fixed; ++i)
      for (std::int64_t d = 0; d < value_dim; ++d)
        mixed[static_cast<std::size_t>(d)] +=
            fixed_scores[static_cast<std::size_t>(i)] * at(args.fixed_values, {i, kv_head(), d});
    for (std::int64_t d = 0; d < value_dim; ++d)
      put(args.out, {query, head * value_dim + d}, mixed[static_cast<std::size_t>(d)] / sum);
  }
};

}  // namespace

std::int64_t kv_block_bytes(const KvSpec& spec) { return kv_exchange_bytes(spec); }

Result<> supports(const KvSpec& spec, int q_heads) {
  if (spec.head_dim < 8 || spec.head_dim % 8 != 0)
    return invalid("head_dim", "{} is not a multiple of 8", spec.head_dim);
  if (spec.block_size < 16 || spec.block_size % 16 != 0)
    return invalid("block_size", "{} is not a multiple of 16", spec.block_size);
  if (spec.rate < 1 || spec.block_size % spec.rate != 0)
    return invalid("block_size", "{} is not a multiple of the {} tokens of an entry", spec.block_size, spec.rate);
  if (spec.shared_rows() && (spec.kv_heads != 1 || bits_of(spec.dtype) <= 8))
    return field_failure(
        "kv_cache_dtype", ErrorCode::unsupported,
        "attention that uses its keys as values needs float32, float16 or bfloat16 and one key head");
  if (spec.values_in_keys < 0 || (spec.values_in_keys >= spec.head_dim && !spec.shared_rows()))
    return invalid("kv_lora_rank", "{} must be less than the keys' {} elements", spec.values_in_keys,
                   spec.head_dim);
  if (spec.index_dim > 0 && !spec.shared_rows() &&
      (spec.kv_heads > 1 || spec.index_dim + spec.values_in_keys >= spec.head_dim))
    return invalid("index_head_dim", "{} of {} keys of {}", spec.index_dim, spec.kv_heads, spec.head_dim);
  if (spec.kv_heads < 1 || q_heads < 1 || q_heads % spec.kv_heads != 0)
    return invalid("num_key_value_heads", "{} does not divide {} query heads", spec.kv_heads, q_heads);
  return check_kv_format(spec, "reference");
}

Result<std::unique_ptr<AttentionPlan>> make_attention_plan(Device&, const AttentionLimits&) {
  return std::make_unique<ReferencePlan>();
}

void plan_attention(Stream&, const AttentionShape& shape, AttentionPlan& plan) {
  auto& p = static_cast<ReferencePlan&>(plan);
  p.query_starts.assign(shape.query_starts.begin(), shape.query_starts.end());
  p.lengths.assign(shape.lengths.begin(), shape.lengths.end());
  p.block_tables.assign(shape.block_tables.begin(), shape.block_tables.end());
  p.table_stride = shape.table_stride;
}

void qkv_store(Stream&, const QkvStoreArgs& args) {
  const KvSpec& spec = args.cache.spec;
  const std::int64_t dim = spec.head_dim;
  const std::int64_t kv_row = spec.kv_heads * dim;
  const std::int64_t q_row = args.q_heads * dim;
  check_indices("slot", args.slots, args.cache.blocks * spec.block_size);
  const auto slice = [&](std::int64_t i, std::int64_t first, std::int64_t count) {
    std::vector<double> row;
    for (std::int64_t k = 0; k < count; ++k) row.push_back(at(args.qkv, {i, first + k}));
    return row;
  };
  const auto head_of = [&](const std::vector<double>& row, std::int64_t head) {
    return std::vector<double>(row.begin() + head * dim, row.begin() + (head + 1) * dim);
  };
  for (std::int64_t i = 0; i < args.qkv.size(0); ++i) {
    const std::int64_t slot = args.slots.as<std::int64_t>()[i];
    std::byte* block = block_address(args.cache, slot / spec.block_size);
    const auto norm_of = [&](const Norm& norm) { return args.norm_rotated ? Norm{} : norm; };
    const auto queries = normalized_heads(norm_of(args.q_norm), args.norm_whole_row, slice(i, 0, q_row), dim);
    const auto rotate_head = [&](const Norm& norm, std::int64_t head, std::vector<double>& values) {
      rotate(args.rope, i, values);
      if (args.norm_rotated) normalize(norm, values, norm.weight.rank == 2 ? head * dim : 0);
    };
    for (std::int64_t h = 0; h < args.q_heads; ++h) {
      std::vector<double> q = head_of(queries, h);
      rotate_head(args.q_norm, h, q);
      for (std::int64_t d = 0; d < dim; ++d) put(args.q_out, {i, h, d}, q[static_cast<std::size_t>(d)]);
    }
    if (!args.stores) continue;
    const auto keys =
        normalized_heads(norm_of(args.k_norm), args.norm_whole_row, slice(i, q_row, kv_row), dim);
    const auto values = normalized_heads(args.v_norm, false, slice(i, q_row + kv_row, kv_row), dim);
    for (std::int64_t h = 0; h < spec.kv_heads; ++h) {
      std::vector<double> k = head_of(keys, h);
      rotate_head(args.k_norm, h, k);
      const std::int64_t token = slot % spec.block_size;
      store_vector(block, spec, kKey, h, token, k);
      store_vector(block, spec, kValue, h, token,
                   std::span(values).subspan(static_cast<std::size_t>(h * dim), k.size()));
    }
  }
}

void latent_store(Stream&, const LatentStoreArgs& args) {
  const KvSpec& spec = args.cache.spec;
  const std::int64_t latent = spec.values_in_keys, rotary = args.rope.rotary_dim;
  check_indices("slot", args.slots, args.cache.blocks * spec.block_size);
  for (std::int64_t i = 0; i < args.kv.size(0); ++i) {
    const std::int64_t slot = args.slots.as<std::int64_t>()[i];
    std::vector<double> key, rotated(static_cast<std::size_t>(rotary));
    for (std::int64_t d = 0; d < latent; ++d) key.push_back(at(args.kv, {i, d}));
    normalize(args.norm, key);
    for (std::int64_t d = 0; d < rotary; ++d)
      rotated[static_cast<std::size_t>(d)] = at(args.kv, {i, latent + d});
    rotate(args.rope, i, rotated);
    key.insert(key.end(), rotated.begin(), rotated.end());
    for (std::int64_t d = 0; d < spec.index_dim; ++d) key.push_back(at(args.index_keys, {i, d}));
    store_vector(block_address(args.cache, slot / spec.block_size), spec, kKey, 0, slot % spec.block_size,
                 key);
    for (std::int64_t h = 0; h < args.q.size(1); ++h) {
      for (std::int64_t d = 0; d < rotary; ++d)
        rotated[static_cast<std::size_t>(d)] = at(args.q, {i, h, args.q.size(2) - rotary + d});
      rotate(args.rope, i, rotated);
      for (std::int64_t d = 0; d < rotary; ++d)
        put(args.q_out, {i, h, latent + d}, rotated[static_cast<std::size_t>(d)]);
    }
  }
}

void choose_blocks(Stream&, const ChooseBlocksArgs& args) {
  const auto& plan = static_cast<const ReferencePlan&>(args.plan);
  const KvSpec& spec = args.cache.spec;
  const std::int64_t most = args.chosen.size(2);
  const auto product = [&](std::size_t s, const std::vector<double>& q, std::int64_t token) {
    const auto entry = static_cast<std::int64_t>(s) * plan.table_stride + token / spec.block_size;
    const CachedVector key =
        vector_of(block_address(args.cache, plan.block_tables[static_cast<std::size_t>(entry)]), spec, kKey,
                  0, token % spec.block_size);
    double sum = 0;
    for (std::size_t d = 0; d < q.size(); ++d) sum += q[d] * key[static_cast<std::int64_t>(d)];
    return sum;
  };
  for (std::size_t s = 0; s < plan.lengths.size(); ++s)
    for (std::int64_t query = plan.query_starts[s]; query < plan.query_starts[s + 1]; ++query)
      for (std::int64_t head = 0; head < args.q.size(1); ++head) {
        const std::int64_t last = plan.lengths[s] - (plan.query_starts[s + 1] - query);
        const std::vector<double> q = query_of(args.q, spec, query, head);
        std::vector<std::pair<double, std::int32_t>> blocks;  // negative scores
        for (std::int64_t t = 0; t <= last; ++t) {
          const std::int64_t block = t / args.block;
          if (t % args.block == 0)
            blocks.emplace_back(std::numeric_limits<double>::infinity(), static_cast<std::int32_t>(block));
          double& score = blocks.back().first;
          score = last / args.block - block < args.local ? -std::numeric_limits<double>::infinity()
                                                         : std::min(score, -product(s, q, t));
        }
        std::ranges::sort(blocks);
        blocks.resize(std::min(blocks.size(), static_cast<std::size_t>(most)));
        std::ranges::sort(blocks, {}, &std::pair<double, std::int32_t>::second);
        auto* chosen = args.chosen.row<std::int32_t>(query) + head * args.chosen.stride[1];
        std::fill_n(chosen, most, kNoToken);
        for (const auto& [score, block] : blocks) *chosen++ = block;
      }
}

void choose_tokens(Stream& stream, const ChooseTokensArgs& args) {
  if (args.cache.spec.shared_rows()) return choose_entries(stream, args);
  const auto& plan = static_cast<const ReferencePlan&>(args.plan);
  const KvSpec& spec = args.cache.spec;
  const auto score_of = [&](std::size_t s, std::int64_t query, std::int64_t token) {
    const auto entry = static_cast<std::int64_t>(s) * plan.table_stride + token / spec.block_size;
    const CachedVector key =
        vector_of(block_address(args.cache, plan.block_tables[static_cast<std::size_t>(entry)]), spec, kKey,
                  0, token % spec.block_size);
    double score = 0;
    for (std::int64_t h = 0; h < args.q.size(1); ++h) {
      double product = 0;
      for (std::int64_t d = 0; d < spec.index_dim; ++d)
        product += at(args.q, {query, h, d}) * key[spec.score_dim() + d];
      score += at(args.weights, {query, h}) * std::max(product, 0.0);
    }
    return score;
  };
  for (std::size_t s = 0; s < plan.lengths.size(); ++s)
    for (std::int64_t query = plan.query_starts[s]; query < plan.query_starts[s + 1]; ++query) {
      std::vector<std::pair<double, std::int32_t>> tokens;
      for (std::int32_t t = 0; t <= plan.lengths[s] - (plan.query_starts[s + 1] - query); ++t)
        tokens.emplace_back(-score_of(s, query, t), t);
      std::ranges::sort(tokens);
      tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(args.chosen.size(1))));
      std::ranges::sort(tokens, {}, &std::pair<double, std::int32_t>::second);
      auto* chosen = args.chosen.row<std::int32_t>(query);
      std::fill_n(chosen, args.chosen.size(1), kNoToken);
      for (const auto& [score, token] : tokens) *chosen++ = token;
    }
}

void attention(Stream& stream, const AttentionArgs& args) {
  if (args.cache.spec.shared_rows()) return attend_rows(stream, args);
  const auto& plan = static_cast<const ReferencePlan&>(args.plan);
  for (std::size_t s = 0; s < plan.lengths.size(); ++s) {
    const std::int64_t first = plan.query_starts[s];
    const std::int64_t past_last = plan.query_starts[s + 1];
    for (std::int64_t query = first; query < past_last; ++query) {
      const std::int64_t length = plan.lengths[s];
      const std::int64_t position = length - (past_last - query);
      std::int64_t begin = args.window > 0 ? std::max<std::int64_t>(0, position - args.window + 1) : 0;
      if (args.chunk > 0) begin = position / args.chunk * args.chunk;
      const std::int64_t ahead = args.window > 0 ? position + args.window : length;
      const std::int64_t end = args.causal ? position + 1 : std::min(length, ahead);
      for (std::int64_t head = 0; head < args.q.size(1); ++head)
        HeadQuery{args, static_cast<std::int64_t>(s), query, position, head, begin, end}.attend();
    }
  }
}

}  // namespace octavo::reference
