// Interface between models and backends: a constant table of typed functions, one for each operator.
//
// Model code calls `ops.matmul(stream, {...})`. operators/list.h lists the operators, and operators/*.h
// define them. kernels/reference is the specification: plain loops in double precision, with which tests
// compare every other backend. The loader rejects a model that needs more than the backend supports (Need).
//
// Operators are batch invariant: an element of an output depends only on its own inputs. The order of its
// sum depends only on the weights' shapes and on the position in the sequence, and not on the batch, the
// prefill chunks, the number of threads or other rows.
//
// In comments on shapes, `act` is the activation format of the weights (Weight::activation): f32, bf16 or
// f16. A view that is "optional" may be empty.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "kernels/attention_plan.h"
#include "kernels/device.h"
#include "kernels/fp8_rounding.h"
#include "kernels/operators/attention.h"
#include "kernels/operators/experts.h"
#include "kernels/operators/grams.h"
#include "kernels/operators/list.h"
#include "kernels/operators/mixes.h"
#include "kernels/operators/rows.h"
#include "kernels/operators/sample.h"
#include "kernels/operators/states.h"
#include "kernels/operators/streams.h"
#include "kernels/weight.h"
#include "tensor/encoding.h"
#include "tensor/mapped_file.h"
#include "tensor/view.h"

namespace octavo {

template <class Args>
// Checks shapes and formats; a failure is a bug of the caller. operators/*.cc define the specialisations.
void check(const Args& args);

// One operator of a backend; null if the backend does not support it.
template <class Args>
class Op {
 public:
  using Function = void (*)(Stream&, const Args&);
  constexpr Op(Function function) : function_(function) {}  // NOLINT: implicit, so that tables are short
  void operator()(Stream& stream, const Args& args) const {
    check(args);
    CHECK(function_ != nullptr, "the backend lacks an operator that no part has named in needs()");
    function_(stream, args);
  }

 private:
  Function function_;
};

// Features that a network may need from a backend: operators, and forms of operators.
#define OCTAVO_NAME(name, of, backends) name,
enum class Need : std::uint8_t { OCTAVO_OPERATORS(OCTAVO_NAME) OCTAVO_FORMS(OCTAVO_NAME) };
#undef OCTAVO_NAME

// Returns a description of the feature for error messages.
constexpr std::string_view name(Need need) {
#define OCTAVO_OPERATOR_WORDS(name, Args, backends) "operator " #name,
#define OCTAVO_FORM_WORDS(name, words, backends) words,
  constexpr std::string_view kWords[] = {OCTAVO_OPERATORS(OCTAVO_OPERATOR_WORDS)
                                             OCTAVO_FORMS(OCTAVO_FORM_WORDS)};
#undef OCTAVO_OPERATOR_WORDS
#undef OCTAVO_FORM_WORDS
  return kWords[static_cast<std::size_t>(need)];
}

// A matrix of a checkpoint, which consists of one or more parts, stacked by rows. Parts may have different
// encodings.
struct MatrixSource {
  std::span<const MatrixPart> parts;
  DType activation = DType::f32;
  // If set, all parts are in this file, and the backend may read them after prepare().
  std::shared_ptr<const MappedFile> file = {};
  // How products round x. Only for fp8 matrices whose groups are multiples of kFp8Columns or whole rows, and
  // only if the backend has Need::fp8_activations. matmul and grouped_matmul round; the matrix must have no
  // other use.
  Fp8Rounding rounding = {};
};

struct Ops {
  bool (*has)(Need);
  // Returns the format that activations must have (f32, bf16 or f16) if the matrix is stored in the format
  // `stored`.
  DType (*activation)(DType stored);
  // Converts a matrix to the backend's layout. It reads the source once, so the caller may unmap the source
  // afterwards, unless MatrixSource::file is set.
  Result<WeightPtr> (*prepare)(Device&, const MatrixSource&);

  std::int64_t (*kv_block_bytes)(const KvSpec&);
  // Returns an error that names the head size or the format, if attention does not support this KV cache.
  Result<> (*supports)(const KvSpec&, int q_heads);
  // Allocates all memory for attention. Returns an error if memory does not suffice.
  Result<std::unique_ptr<AttentionPlan>> (*make_attention_plan)(Device&, const AttentionLimits&);
  void (*plan_attention)(Stream&, const AttentionShape&, AttentionPlan&);
  // Allocates memory for sample() with up to `rows` rows of `vocab` logits. Returns an error if memory does
  // not suffice.
  Result<> (*reserve_sampling)(Device&, std::int64_t rows, std::int64_t vocab);

#define OCTAVO_MEMBER(name, Args, backends) Op<Args> name;
  OCTAVO_OPERATORS(OCTAVO_MEMBER)
#undef OCTAVO_MEMBER
};

// A device with its operators and a stream. Other modules access the hardware only through it.
struct Backend {
  std::string_view name;
  const Ops& ops;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

}  // namespace octavo
