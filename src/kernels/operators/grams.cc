#include "kernels/operators/grams.h"

#include "kernels/operators/expect.h"
#include "kernels/ops.h"

namespace octavo {

template <>
void check(const GramRowsArgs& args) {
  CHECK(args.ids.rank == 1 && args.state.rank == 3);
  const std::int64_t n = args.ids.size(0), most = args.state.size(2);
  CHECK(most > 0 && most < kMaxGram && args.vocab > 0 && args.vocab < (1 << 24),
        "{} tokens, a vocabulary of {}", most, args.vocab);
  CHECK(!args.tables.empty() && args.tables.size() <= kMaxGramTables, "{} tables", args.tables.size());
  for (const GramTable& table : args.tables)
    CHECK(table.length > 0 && table.length <= most + 1 && table.rows > 0 && table.rows <= INT32_MAX,
          "a table of {} rows for {} tokens", table.rows, table.length);
  expect("gram_rows ids", args.ids, DType::i32, {n});
  expect("gram_rows state", args.state, DType::f32, {args.state.size(0), 1, most});
  expect("gram_rows rows", args.rows, DType::i32, {std::ssize(args.tables), n});
  expect_plan(args.plan, n);
}

}  // namespace octavo
