#include "model/blocks/grams.h"

#include <algorithm>
#include <vector>

#include "model/blocks/recurrent.h"

namespace octavo {
namespace {

class GramsBlock final : public Block {
 public:
  GramsBlock(const GramInput& spec, const Namer& top, std::int64_t dim, std::int64_t vocab)
      : spec_(spec), dim_(dim), vocab_(vocab) {
    const auto named = [](const std::string& pattern, std::size_t i) {
      return fmt::format(fmt::runtime(pattern), i);
    };
    for (std::size_t i = 0; i < spec.tables.size(); ++i) {
      tables_.push_back(
          top.table(named(top.names.grams.tables, i), spec.tables[i].rows, spec.dim, MatrixUse::table));
      matrices_.push_back(top.linear({named(top.names.grams.matrices, i)}, {dim}, spec.dim, false));
      most_ = std::max<std::int64_t>(most_, spec.tables[i].length - 1);
    }
  }

  void list(ParameterList& list) override { list.add(tables_, matrices_); }
  std::int64_t state_floats() const override { return most_; }
  void reserve(Arena arena) const override { take(arena.scratch, arena.tokens, arena.activation); }
  Result<> splits(const Shard&) const override { return not_split("embeddings of several tokens"); }
  BlockCost cost(const Pass& pass) const override {
    BlockCost cost{.state = 2 * static_cast<double>(most_)};
    for (const LinearParameter& matrix : matrices_) cost = cost + linear_cost(matrix, pass);
    return cost;
  }
  std::string text() const override {
    return fmt::format("{} embeddings of up to {} tokens", tables_.size(), most_ + 1);
  }

  void run(const Step& step, const View& x, const View& out) const override {
    Scratch scratch = step.scratch;
    const Work w = take(scratch, step.tokens(), x.dtype);
    const Ops& ops = step.backend.ops;
    Stream& stream = *step.backend.stream;
    ops.gram_rows(stream, {.ids = step.batch.ids,
                           .vocab = vocab_,
                           .stop = spec_.stop,
                           .tables = spec_.tables,
                           .state = state_part(step.memory.states, 0, {1, most_}),
                           .plan = step.memory.state_plan,
                           .rows = w.rows});
    step.backend.device->clear(stream, w.sum);
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const View rows = w.rows.rows(static_cast<std::int64_t>(i), 1);
      ops.embed(stream, {.ids = View::of(rows.data, rows.dtype, {step.tokens()}),
                         .table = *tables_[i].weight,
                         .out = w.wide});
      ops.add_norm(stream, {.residual = w.wide, .out = w.narrow});
      linear(step, w.narrow, matrices_[i], w.made);
      ops.add_norm(stream, {.residual = w.sum, .delta = w.made});
    }
    ops.add_norm(stream, {.residual = w.sum, .out = out});
  }

 private:
  struct Work {
    View rows, wide, narrow, made, sum;
  };
  Work take(Scratch& scratch, std::int64_t n, DType act) const {
    return {.rows = scratch.take(DType::i32, {std::ssize(spec_.tables), n}),
            .wide = scratch.take(DType::f32, {n, spec_.dim}),
            .narrow = scratch.take(act, {n, spec_.dim}),
            .made = scratch.take(act, {n, dim_}),
            .sum = scratch.take(DType::f32, {n, dim_})};
  }

  GramInput spec_;
  std::int64_t dim_, vocab_, most_ = 0;
  std::vector<MatrixParameter> tables_;
  std::vector<LinearParameter> matrices_;
};

}  // namespace

std::unique_ptr<Block> make_grams(const GramInput& spec, const Namer& top, std::int64_t dim,
                                  std::int64_t vocab) {
  return std::make_unique<GramsBlock>(spec, top, dim, vocab);
}

}  // namespace octavo
