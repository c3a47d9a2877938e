#include "kernels/sampling.h"

namespace octavo::sampling {
namespace {

struct Range {
  std::size_t begin = 0, count = 0;
  template <class T>
  std::span<const T> of(const View& view) const {
    return count == 0 ? std::span<const T>{} : std::span<const T>{view.as<T>() + begin, count};
  }
};

Range range_of(const RowLists& lists, std::int64_t r) {
  if (!lists.starts) return {};
  const auto* starts = lists.starts.as<std::int32_t>();
  return {static_cast<std::size_t>(starts[r]), static_cast<std::size_t>(starts[r + 1] - starts[r])};
}

}  // namespace

Row::Row(const SampleArgs& args, std::int64_t r)
    : DrawRule(args.draw_rules()[r]),
      history(range_of(args.history, r).of<std::int32_t>(args.history.ids)),
      history_counts(range_of(args.history, r).of<std::int32_t>(args.history_counts)),
      bias(range_of(args.bias, r).of<std::int32_t>(args.bias.ids)),
      reported(range_of(args.reported, r).of<std::int32_t>(args.reported.ids)),
      bias_values(range_of(args.bias, r).of<float>(args.bias_values)) {
  if (mask_row >= 0) mask = reinterpret_cast<const std::uint32_t*>(args.mask.row<std::int32_t>(mask_row));
  top_k = top_k >= args.logits.size(1) ? 0 : top_k;
}

RowOutput::RowOutput(const SampleArgs& args, std::int64_t r)
    : id(args.out_id.as<std::int32_t>() + r),
      logprob(args.out_logprob ? args.out_logprob.as<float>() + r : nullptr),
      rank(args.out_rank ? args.out_rank.as<std::int32_t>() + r : nullptr),
      top_ids(args.out_top_ids ? args.out_top_ids.row<std::int32_t>(r) : nullptr),
      top_logprobs(args.out_top_logprobs ? args.out_top_logprobs.row<float>(r) : nullptr) {}

void RowOutput::reject(const Row& row) const {
  *id = -1;
  if (!row.reports()) return;
  *logprob = kLogprobFloor;
  *rank = 0;
  const std::size_t count =
      row.reported.empty() ? static_cast<std::size_t>(row.top_count) : row.reported.size();
  std::fill_n(top_ids, count, -1);
  std::fill_n(top_logprobs, count, kLogprobFloor);
}

}  // namespace octavo::sampling
