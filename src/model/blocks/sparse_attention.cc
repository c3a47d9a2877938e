// Attention to blocks of tokens, which an indexer chooses.
#include "model/blocks/sparse_attention.h"

#include <algorithm>

#include "model/blocks/block.h"

namespace octavo {

// The specialisation is in attention.cc.
template <>
std::unique_ptr<Block> make_block(const Attention& spec, const Namer& name, std::int64_t dim);

namespace {

class SparseAttentionBlock final : public Block {
 public:
  SparseAttentionBlock(const SparseAttention& spec, const Namer& name, std::int64_t dim)
      : spec_(spec), attention_(make_block(spec.attention, name, dim)) {
    const SparseAttention::Names& names = name.names.of<SparseAttention>();
    index_ = name.linear({names.q, names.k}, {q_rows(), spec.index_dim}, dim, false);
    q_norm_ = name.norm(spec.attention.norms.qk, names.q_norm, spec.index_dim);
    k_norm_ = name.norm(spec.attention.norms.qk, names.k_norm, spec.index_dim);
    // The cache has values, which are not used.
    index_.weight.order = {{0, q_rows()}, {q_rows(), spec.index_dim}, {q_rows(), spec.index_dim}};
    index_.weight.rows = q_rows() + 2 * std::int64_t{spec.index_dim};
  }

  void list(ParameterList& list) override { list.add(attention_, index_, q_norm_, k_norm_); }
  void loaded() override { attention_->loaded(); }
  std::optional<CacheNeed> cache() const override { return attention_->cache(); }
  std::optional<CacheNeed> entries() const override {
    return CacheNeed{.q_heads = heads(), .kv_heads = 1, .head_dim = spec_.index_dim};
  }
  void reserve(Arena arena) const override {
    take(arena.scratch, arena.tokens, arena.activation);
    arena.rows<ChosenBlocks>(DType::i32, std::int64_t{heads()} * spec_.attention.mask.chosen_blocks);
    attention_->reserve(arena);
  }
  Result<> splits(const Shard&) const override { return not_split("attention to blocks of tokens"); }

  BlockCost cost(const Pass& pass) const override {
    const BlockCost index{
        .cached = static_cast<double>(pass.context + 2 * pass.tokens) * spec_.index_dim,
        .operations = 2 * static_cast<double>(pass.tokens * pass.context) * static_cast<double>(q_rows())};
    return attention_->cost(pass) + linear_cost(index_, pass) + index;
  }
  std::string text() const override {
    return fmt::format("{}, {} blocks of {}", attention_->text(), spec_.attention.mask.chosen_blocks,
                       spec_.attention.mask.block_tokens);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    const LayerCache& cache = step.memory.entries;
    linear(step, x, index_, w.qk);
    ops.qkv_store(stream, {.qkv = w.qk,
                           .q_heads = heads(),
                           .q_norm = q_norm_.norm(),
                           .k_norm = k_norm_.norm(),
                           .rope = step.rope(spec_.attention.rope),
                           .slots = cache.slots,
                           .cache = cache.memory,
                           .q_out = w.q});
    const View rows = step.slot<ChosenBlocks>();
    const std::int64_t most = spec_.attention.mask.chosen_blocks;
    ops.choose_blocks(stream, {.q = w.q,
                               .cache = cache.memory,
                               .plan = *cache.plan,
                               .block = spec_.attention.mask.block_tokens,
                               .local = spec_.local,
                               .chosen = View::of(rows.data, rows.dtype, {step.tokens(), heads(), most})});
    attention_->run(step, x, out);
  }

 private:
  struct Work {
    View qk, q;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.qk = scratch.take(act, {n, q_rows() + 2 * std::int64_t{spec_.index_dim}}),
            .q = scratch.take(act, {n, heads(), spec_.index_dim})};
  }
  int heads() const { return spec_.attention.kv_heads; }
  std::int64_t q_rows() const { return std::int64_t{heads()} * spec_.index_dim; }

  SparseAttention spec_;
  std::unique_ptr<Block> attention_;
  LinearParameter index_;
  NormParameter q_norm_, k_norm_;
};

}  // namespace

template <>
std::unique_ptr<Block> make_block(const SparseAttention& spec, const Namer& name, std::int64_t dim) {
  return std::make_unique<SparseAttentionBlock>(spec, name, dim);
}

}  // namespace octavo
