// Rows of token sequences in tables.
#include "kernels/cuda/views.h"
#include "kernels/operators/grams.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = 128;

// GramRowsArgs, with the tables in the kernel's parameters.
struct GramParams {
  View ids, state, rows;
  StatePlan plan;
  std::int64_t vocab;
  std::int32_t stop;
  int count;
  GramTable tables[kMaxGramTables];
};

// The tokens of one sequence, including those of earlier steps.
struct History {
  const std::int32_t* ids;
  std::int64_t begin;   // first token of this step
  const float* before;  // ids of earlier tokens plus 1, the latest first; null: there are none
  std::int64_t most;    // number of elements of `before`

  // Returns the id of the token d positions before token t, plus 1; 0: there is no such token, or it is not
  // in the state.
  __device__ std::int32_t at(std::int64_t t, std::int64_t d) const {
    if (t - d >= begin) return ids[t - d] + 1;
    const std::int64_t i = begin - (t - d) - 1;
    return before != nullptr && i < most ? static_cast<std::int32_t>(before[i]) : 0;
  }
};

__device__ std::int32_t row_of(const GramParams& p, const GramTable& table, const History& history,
                               std::int64_t t) {
  std::int64_t known[kMaxGram] = {};
  for (int d = 0; d < table.length; ++d) {
    const std::int32_t id = history.at(t, d) - 1;
    if (id < 0 || (d > 0 && id == p.stop)) break;
    known[d] = id;
  }
  std::int64_t row = 0;
  for (int d = table.length - 1; d >= 0; --d) row = (row * p.vocab + known[d]) % table.rows;
  return static_cast<std::int32_t>(row);
}

// A thread block processes one sequence.
__global__ void __launch_bounds__(kThreads) gram_rows_kernel(GramParams p) {
  wait_for_kernels();
  const std::int64_t s = block_x(), begin = items<std::int32_t>(p.plan.starts)[s],
                     end = items<std::int32_t>(p.plan.starts)[s + 1];
  if (begin == end) return;
  const std::int64_t most = p.state.size(2);
  float* const state = &element<float>(p.state, items<std::int32_t>(p.plan.slots)[s], 0);
  const bool begins = items<std::int32_t>(p.plan.positions)[begin] == 0;
  const History history{items<std::int32_t>(p.ids), begin, begins ? nullptr : state, most};
  for (std::int64_t i = thread(); i < (end - begin) * p.count; i += kThreads) {
    const std::int64_t t = begin + i / p.count, table = i % p.count;
    element<std::int32_t>(p.rows, table, t) = row_of(p, p.tables[table], history, t);
  }
  for (std::int64_t i = thread(); p.plan.copies && i < (end - begin) * most; i += kThreads) {
    const std::int64_t t = begin + i / most, d = i % most;
    if (const std::int32_t slot = items<std::int32_t>(p.plan.copies)[t]; slot >= 0)
      element<float>(p.state, slot, d) = static_cast<float>(history.at(t, d));
  }
  const float last = thread() < most ? static_cast<float>(history.at(end - 1, thread())) : 0;
  __syncthreads();  // The barrier waits until all threads have read the state.
  if (thread() < most) state[thread()] = last;
}

}  // namespace

void run_gram_rows(Stream& stream, const GramRowsArgs& args) {
  GramParams params{.ids = args.ids,
                    .state = args.state,
                    .rows = args.rows,
                    .plan = args.plan,
                    .vocab = args.vocab,
                    .stop = args.stop,
                    .count = static_cast<int>(args.tables.size()),
                    .tables = {}};
  for (int i = 0; i < params.count; ++i) params.tables[i] = args.tables[static_cast<std::size_t>(i)];
  launch(handle_of(stream), row_grid(args.plan.slots.size(0)), kThreads, 0, gram_rows_kernel, params);
}

}  // namespace octavo::cuda
