#include "kernels/ops.h"

namespace octavo {
namespace {

void check_array(const View& view, DType dtype, std::int64_t count, std::string_view what) {
  CHECK(view.dtype == dtype && view.rank == 1 && view.size(0) >= count && view.contiguous(),
        "{}: {} of rank {}, {} items for {}", what, name(view.dtype), view.rank, view.size(0), count);
}

void check_rows(const View& view, DType dtype, std::int64_t rows, std::string_view what) {
  CHECK(view.dtype == dtype && view.rank == 2 && view.size(0) >= rows && view.stride[1] == 1,
        "{}: {} of rank {}, {} rows for {}", what, name(view.dtype), view.rank, view.size(0), rows);
}

void check_lists(const RowLists& lists, std::int64_t rows, std::string_view what) {
  if (!lists.starts) return;
  check_array(lists.starts, DType::i32, rows + 1, what);
  check_array(lists.ids, DType::i32, 0, what);
}

}  // namespace

template <>
void check(const SampleArgs& args) {
  const std::int64_t rows = args.logits.size(0);
  check_rows(args.logits, DType::f32, rows, "logits");
  CHECK(args.logits.size(1) >= 1 && args.logits.size(1) <= kMaxVocab, "vocabulary of {}",
        args.logits.size(1));
  CHECK(args.rules.dtype == DType::u8 && args.rules.rank == 2 && args.rules.size(0) >= rows &&
            args.rules.size(1) == sizeof(DrawRule) && args.rules.contiguous(),
        "rules: {} of rank {}, {} items for {}", name(args.rules.dtype), args.rules.rank, args.rules.size(0),
        rows);

  check_lists(args.history, rows, "history");
  if (args.history.starts)
    check_array(args.history_counts, DType::i32, args.history.ids.size(0), "history_counts");
  check_lists(args.bias, rows, "bias");
  if (args.bias.starts) check_array(args.bias_values, DType::f32, args.bias.ids.size(0), "bias_values");
  if (args.mask) {
    check_rows(args.mask, DType::i32, 0, "mask");
    CHECK(args.mask.size(1) >= (args.logits.size(1) + 31) / 32, "mask of {} words", args.mask.size(1));
  }
  check_lists(args.reported, rows, "reported");

  check_array(args.out_id, DType::i32, rows, "out_id");
  check_array(args.out_logprob, DType::f32, rows, "out_logprob");
  check_array(args.out_rank, DType::i32, rows, "out_rank");
  if (args.out_top_ids) {
    check_rows(args.out_top_ids, DType::i32, rows, "out_top_ids");
    check_rows(args.out_top_logprobs, DType::f32, rows, "out_top_logprobs");
  }
}

}  // namespace octavo
