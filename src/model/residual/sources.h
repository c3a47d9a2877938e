// Attention over sources (AttendedSources). The residual is the sum of the current group's outputs. The bank
// has the embedding and the sums of the earlier groups.
#pragma once

#include <memory>
#include <string>

#include "model/residual/half.h"
#include "model/residual/scheme.h"
#include "model/spec.h"

namespace octavo {

struct SourceBank {};  // f32 [tokens, sources * dim]
struct MixedRows {};   // f32 [tokens, dim]: input of a half, before its norm

// A mixture of the first `banked` sources of the bank and, with `residual`, the residual.
class SourceMix {
 public:
  // `tensor` is the beginning of the names of two tensors, whose product is the query. "": the query is 0.
  SourceMix(const AttendedSources& spec, std::int64_t dim, const Namer& name, const std::string& tensor,
            int banked, bool residual);

  void list(ParameterList& list) { list.add(query_); }
  void mix(const Step& step, const View& out) const;

 private:
  std::int64_t dim_;
  float eps_;
  int banked_;
  bool residual_;
  VectorParameter query_;
};

class SourceScheme final : public ResidualScheme {
 public:
  SourceScheme(const AttendedSources& spec, const Namer& top, std::int64_t dim, int layers);

  void list(ParameterList& list) override { output_.list(list); }
  void reserve(Arena arena) const override;
  bool spans_layers() const override { return true; }
  void end(const Step& step) const override;

 private:
  int sources_;
  SourceMix output_;
};

// Moves the residual to the bank, as source `index`, before the first layer of a group.
class BankResidual final : public Phase {
 public:
  BankResidual(int index, std::int64_t dim) : index_(index), dim_(dim), zero_(constant_vector({0})) {}

  void list(ParameterList& list) override { list.add(zero_); }
  void reserve(Arena arena) const override { arena.every_row(); }
  void run(const Step& step) const override;

 private:
  int index_;
  std::int64_t dim_;
  VectorParameter zero_;
};

// x += block(norm(mixture))
class SourceHalf final : public LayerHalf {
 public:
  SourceHalf(std::unique_ptr<Block> block, HalfNorms norms, SourceMix mix, std::int64_t dim)
      : LayerHalf(std::move(block), std::move(norms), 1, dim), mix_(std::move(mix)) {}

  void list(ParameterList& list) override;
  void reserve(Arena arena) const override;

 private:
  View enter(const Step& step) const override;

  SourceMix mix_;
};

}  // namespace octavo
