#include "model/blocks/qkv_rows.h"

namespace octavo {

std::vector<std::int64_t> qkv_rows(const Attention& a, std::size_t matrices) {
  if (a.source >= 0) return {a.q_dim()};
  if (a.q_rank > 0) return {a.kv_dim(), a.kv_dim()};
  const int values = a.kv_heads * a.stored_value_dim();
  if (matrices == 1) return {(a.output_gate ? 2 : 1) * a.q_dim() + a.kv_dim() + values};
  if (a.keys_are_values) return {a.q_dim(), a.kv_dim()};
  if (matrices == 2) return {a.q_dim(), a.kv_dim() + values};
  // Four matrices: queries, keys, values and gates.
  if (matrices == 4) return {a.q_dim(), a.kv_dim(), a.kv_dim(), a.q_dim()};
  return {a.output_gate ? 2 * a.q_dim() : a.q_dim(), a.kv_dim(), values};
}

namespace {

// Each of `chunks` chunks has the queries, keys and values of some heads. Zeros follow values that are
// narrower than keys.
std::vector<RowRange> out_of_chunks(const Attention& a, std::int64_t chunks) {
  const std::int64_t heads = a.kv_heads / chunks, queries = a.q_dim() / chunks, keys = a.kv_dim() / chunks;
  const std::int64_t value_dim = a.stored_value_dim(), chunk = queries + keys + heads * value_dim;
  std::vector<RowRange> order;
  for (std::int64_t i = 0; i < chunks; ++i) order.push_back({i * chunk, queries});
  for (std::int64_t i = 0; i < chunks; ++i) order.push_back({i * chunk + queries, keys});
  for (std::int64_t i = 0; i < chunks; ++i)
    for (std::int64_t head = 0; head < heads; ++head) {
      order.push_back({i * chunk + queries + keys + head * value_dim, value_dim});
      if (value_dim < a.head_dim) order.push_back({-1, a.head_dim - value_dim});
    }
  return order;
}

// The order of QkvOrder::values_by_head.
std::vector<RowRange> values_last(const Attention& a) {
  std::vector<RowRange> order{{0, a.q_dim()}};
  for (const int kind : {0, 1})
    for (std::int64_t head = 0; head < a.kv_heads; ++head)
      order.push_back({a.q_dim() + (2 * head + kind) * a.head_dim, a.head_dim});
  return order;
}

// The checkpoint stores the gate's rows after the queries of each head.
std::vector<RowRange> gates_last(const Attention& a) {
  std::vector<RowRange> order;
  const std::int64_t dim = a.head_dim, keys = 2 * std::int64_t{a.q_dim()};
  for (std::int64_t head = 0; head < a.q_heads; ++head) order.push_back({2 * head * dim, dim});
  order.push_back({keys, a.kv_dim()});
  order.push_back({keys + a.kv_dim(), a.kv_dim()});
  for (std::int64_t head = 0; head < a.q_heads; ++head) order.push_back({(2 * head + 1) * dim, dim});
  return order;
}

}  // namespace

std::vector<RowRange> qkv_order(const Attention& a, const AttentionNames& names) {
  if (a.output_gate && names.qkv.size() < 4) {
    if (names.qkv_order == QkvOrder::gates_first) return {{a.q_dim(), a.qkv_dim()}, {0, a.q_dim()}};
    return gates_last(a);
  }
  if (names.qkv_order == QkvOrder::by_head) return out_of_chunks(a, a.kv_heads);
  if (names.qkv_order == QkvOrder::by_chunk) return out_of_chunks(a, names.qkv_chunks);
  if (a.value_dim > 0) return out_of_chunks(a, 1);
  if (names.qkv_order == QkvOrder::values_by_head) return values_last(a);
  return {};
}

}  // namespace octavo
