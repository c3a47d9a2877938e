// The sample operator. Threads process different rows, or pieces of one row. The vocabulary is never
// sorted.
#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/sample_scans.h"
#include "kernels/sampling.h"

namespace octavo::cpu {
namespace {

using sampling::Candidate;
using sampling::Row;
using sampling::RowOutput;
using sampling::Softmax;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kBlocksPerPiece = 64;

// Working memory of one row. It is part of the stream's scratch memory.
struct Workspace {
  std::span<float> maxima;          // maximum logit of each block
  std::span<float> sorted_maxima;   // a copy of maxima that selection reorders
  std::span<std::uint64_t> masses;  // probability mass of each block
  std::span<Candidate> listed;      // candidate tokens, by id
  std::span<Candidate> selection;   // a copy of listed that selection reorders
  std::span<float> raw;

  static std::size_t bytes(std::int64_t vocab) {
    return static_cast<std::size_t>(vocab) * (2 * sizeof(Candidate) + sizeof(float)) +
           blocks(vocab) * (sizeof(std::uint64_t) + 2 * sizeof(float));
  }
  Workspace(std::byte* memory, std::int64_t vocab) {
    const auto tokens = static_cast<std::size_t>(vocab);
    const auto take = [&]<class T>(std::span<T>& part, std::size_t count) {
      part = {reinterpret_cast<T*>(memory), count};
      memory += part.size_bytes();
    };
    take(listed, tokens);  // Allocated first, because its items have the strictest alignment.
    take(selection, tokens);
    take(masses, blocks(vocab));
    take(maxima, blocks(vocab));
    take(sorted_maxima, blocks(vocab));
    take(raw, tokens);
  }

 private:
  static std::size_t blocks(std::int64_t vocab) {
    return static_cast<std::size_t>((vocab + kSampleBlock - 1) / kSampleBlock);
  }
};

// Finds the first item, in sampling order, at which the sum of measures reaches `target`. It is a
// quickselect, which reorders the items.
template <class Measure>
Candidate last_of_beginning(std::span<Candidate> items, std::uint64_t target, Measure measure) {
  while (items.size() > 1) {
    // Moves the median of three items to the front, as the pivot.
    Candidate &a = items[0], &b = items[items.size() / 2], &c = items.back();
    if (sampling::before(b, a) != sampling::before(b, c)) {
      std::swap(a, b);
    } else if (sampling::before(c, a) != sampling::before(c, b)) {
      std::swap(a, c);
    }
    const Candidate pivot = items[0];
    const auto middle = std::partition(items.begin() + 1, items.end(),
                                       [&](const Candidate& x) { return sampling::before(x, pivot); });
    const std::span<Candidate> first{items.begin() + 1, middle};
    std::uint64_t sum = 0;
    for (const Candidate& x : first) sum += measure(x);
    if (sum >= target) {
      items = first;
      continue;
    }
    const std::span<Candidate> second{middle, items.end()};
    if (sum + measure(pivot) >= target || second.empty()) return pivot;
    target -= sum + measure(pivot);
    items = second;
  }
  return items[0];
}

// Samples one row, on one thread (if pool is nullptr) or on all threads of the pool.
class RowSampler {
 public:
  RowSampler(const SampleArgs& args, std::int64_t r, Workspace& workspace, ThreadPool* pool)
      : row_(args, r),
        out_(args, r),
        processed_(args.processed),
        logits_(args.logits.row<float>(r)),
        vocab_(args.logits.size(1)),
        work_(workspace),
        pool_(pool) {}

  void run() {
    if (!scan(logits_)) return out_.reject(row_);
    const bool forced = row_.forced >= 0;
    const bool report_raw = row_.reports() && (forced || !processed_);
    const float* raw = logits_;
    Softmax softmax{max_};
    if (report_raw) {
      softmax.total = sum_masses(logits_, softmax, -kInfinity);
      report_list(logits_, softmax, kEnd);
      if (!forced && row_.changes_logits()) raw = keep_raw();
    }
    if (!forced && !process()) return out_.reject(row_);
    *out_.id = forced ? row_.forced : choose();
    if (report_raw) return report_chosen(raw, softmax, kEnd);
    if (!row_.reports()) return;
    if (row_.greedy()) softmax_.total = sum_masses(logits_, softmax_, -kInfinity);
    report_list(logits_, softmax_, last_);
    report_chosen(logits_, softmax_, last_);
  }

 private:
  // A candidate that comes after all tokens in sampling order.
  static constexpr Candidate kEnd{-kInfinity, std::numeric_limits<std::int32_t>::max(), 0};

  // Calls body(first block, begin, end) for pieces of the row.
  template <class Body>
  void for_pieces(Body&& body) const {
    const std::int64_t blocks = (vocab_ + kSampleBlock - 1) / kSampleBlock;
    const auto piece = [&](std::int64_t first, std::int64_t last) {
      body(first, first * kSampleBlock, std::min(last * kSampleBlock, vocab_));
    };
    if (pool_ == nullptr) return piece(0, blocks);
    pool_->for_ranges(blocks, kBlocksPerPiece, piece);
  }

  // Finds the block maxima. Returns false if the logits define no distribution (for example, because of
  // NaN).
  bool scan(const float* logits) {
    std::atomic<bool> sound{true};
    for_pieces([&](std::int64_t block, std::int64_t begin, std::int64_t end) {
      if (!block_maxima(logits + begin, end - begin, &work_.maxima[static_cast<std::size_t>(block)]))
        sound.store(false, std::memory_order_relaxed);
    });
    return sound.load(std::memory_order_relaxed) && find_max();
  }
  bool find_max() {
    max_ = *std::ranges::max_element(work_.maxima);
    return std::isfinite(max_);
  }

  std::uint64_t sum_masses(const float* logits, const Softmax& softmax, float least) {
    std::atomic<std::uint64_t> total{0};
    for_pieces([&](std::int64_t block, std::int64_t begin, std::int64_t end) {
      total.fetch_add(block_masses(logits + begin, end - begin, softmax, least,
                                   &work_.masses[static_cast<std::size_t>(block)]),
                      std::memory_order_relaxed);
    });
    return total.load(std::memory_order_relaxed);
  }

  const float* keep_raw() {
    for_pieces([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      std::copy(logits_ + begin, logits_ + end, work_.raw.data() + begin);
    });
    return work_.raw.data();
  }

  // Applies mask, bias and penalties, and updates the maxima. Returns false if all tokens are excluded.
  bool process() {
    if (!row_.changes_logits()) return true;
    if (row_.mask != nullptr) {
      for_pieces([&](std::int64_t, std::int64_t begin, std::int64_t end) {
        apply_mask(logits_ + begin, end - begin, row_.mask + begin / 32);
      });
      if (!scan(logits_)) return false;
    }
    change(row_.bias, [&](float logit, std::size_t i) { return logit + row_.bias_values[i]; });
    change(row_.history,
           [&](float logit, std::size_t i) { return row_.penalised(logit, row_.history_counts[i]); });
    return find_max();
  }
  template <class Change>
  void change(std::span<const std::int32_t> ids, Change changed) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      float& logit = logits_[ids[i]];
      float& maximum = work_.maxima[static_cast<std::size_t>(ids[i] / kSampleBlock)];
      const float old = std::exchange(logit, changed(logit, i));
      if (logit >= maximum) {
        maximum = logit;
      } else if (old == maximum) {
        const std::int64_t begin = ids[i] / kSampleBlock * kSampleBlock;
        block_maxima(logits_ + begin, std::min(kSampleBlock, vocab_ - begin), &maximum);
      }
    }
  }

  std::int32_t choose() {
    softmax_ = {max_, row_.greedy() ? 1 : 1 / row_.temperature};
    last_ = kEnd;
    if (row_.greedy()) return first_token();
    least_ = row_.least_exponent();
    if (row_.top_k > 0) {
      keep_top_k();
      if (row_.top_p < 1) keep_top_p(sampling::mass_to_keep(row_.top_p, softmax_.total));
      return draw_listed();
    }
    softmax_.total = sum_masses(logits_, softmax_, least_);
    if (row_.top_p >= 1) {
      const std::int32_t id = draw_of_row();
      if (least_ > -kInfinity && row_.reports()) last_ = last_by_min_p();
      return id;
    }
    const std::uint64_t target = sampling::mass_to_keep(row_.top_p, softmax_.total);
    const std::size_t blocks = work_.maxima.size();
    for (std::size_t count = 64; list_first(logits_, count, least_), weigh() < target;)
      count = count < blocks ? std::min(8 * count, blocks) : blocks + 1;
    keep_top_p(target);
    return draw_listed();
  }

  // Returns the token with the greatest logit; of equal logits, the lowest id.
  std::int32_t first_token() const {
    const auto block = std::ranges::find(work_.maxima, max_) - work_.maxima.begin();
    const float* logits = logits_ + block * kSampleBlock;
    return static_cast<std::int32_t>(std::find<const float*>(logits, logits_ + vocab_, max_) - logits_);
  }

  // Lists the first `count` tokens in sampling order (or all tokens), sorted by id. The list may have more
  // tokens, but no token whose exponent is below `least`. It compares logits with the count-th greatest
  // block maximum, which at least `count` tokens reach.
  void list_first(const float* logits, std::size_t count, float least) {
    float bound = -kInfinity;
    if (count <= work_.maxima.size()) {
      std::ranges::copy(work_.maxima, work_.sorted_maxima.begin());
      const auto nth = work_.sorted_maxima.begin() + static_cast<std::ptrdiff_t>(count) - 1;
      std::ranges::nth_element(work_.sorted_maxima, nth, std::greater<>{});
      bound = *nth;
    }
    listed_ = 0;
    for (std::size_t block = 0; block < work_.maxima.size(); ++block) {
      if (!(work_.maxima[block] >= bound)) continue;
      const std::int64_t begin = static_cast<std::int64_t>(block) * kSampleBlock;
      for (std::int64_t id = begin; id < std::min(begin + kSampleBlock, vocab_); ++id) {
        if (logits[id] >= bound && softmax_.exponent(logits[id]) >= least)
          work_.listed[listed_++] = {logits[id], static_cast<std::int32_t>(id), 0};
      }
    }
  }

  std::span<Candidate> listed() const { return work_.listed.first(listed_); }
  std::span<Candidate> copy_of_listed() const {
    std::ranges::copy(listed(), work_.selection.begin());
    return work_.selection.first(listed_);
  }
  std::uint64_t weigh() {
    std::uint64_t total = 0;
    for (Candidate& c : listed()) total += c.mass = softmax_.mass(c.logit);
    return total;
  }
  void keep_until(const Candidate& last) {
    last_ = last;
    const auto cut =
        std::ranges::remove_if(listed(), [&](const Candidate& c) { return sampling::before(last, c); });
    listed_ -= cut.size();
    softmax_.total = weigh();
  }
  void keep_top_k() {
    const auto count = static_cast<std::size_t>(row_.top_k);
    list_first(logits_, count, least_);
    keep_until(last_of_beginning(copy_of_listed(), count, [](const Candidate&) { return 1u; }));
  }
  void keep_top_p(std::uint64_t target) {
    keep_until(last_of_beginning(copy_of_listed(), target, [](const Candidate& c) { return c.mass; }));
  }
  Candidate last_by_min_p() {
    list_first(logits_, work_.maxima.size() + 1, least_);
    return *std::ranges::max_element(listed(), sampling::before);
  }

  std::int32_t draw_listed() const {
    const std::uint64_t point = sampling::drawn_point(row_.random, softmax_.total);
    std::uint64_t sum = 0;
    for (const Candidate& c : listed())
      if ((sum += c.mass) > point) return c.id;
    return -1;
  }
  std::int32_t draw_of_row() const {
    const std::uint64_t point = sampling::drawn_point(row_.random, softmax_.total);
    std::uint64_t sum = 0;
    std::size_t block = 0;
    while (sum + work_.masses[block] <= point) sum += work_.masses[block++];
    auto id = static_cast<std::int64_t>(block) * kSampleBlock;
    for (;; ++id) {
      const float d = softmax_.exponent(logits_[id]);
      if (d >= least_ && (sum += sampling::mass(d)) > point) return static_cast<std::int32_t>(id);
    }
  }

  // Returns the logprob of `id`. A filter removed the tokens that come after `last` in sampling order.
  float logprob(const float* logits, const Softmax& softmax, const Candidate& last, std::int32_t id) const {
    const Candidate c{logits[id], id, 0};
    return sampling::before(last, c) ? kLogprobFloor : softmax.logprob(c.logit);
  }
  void report_list(const float* logits, const Softmax& softmax, const Candidate& last) {
    const auto put = [&](std::size_t i, std::int32_t id) {
      out_.top_ids[i] = id;
      out_.top_logprobs[i] = logprob(logits, softmax, last, id);
    };
    for (std::size_t i = 0; i < row_.reported.size(); ++i) put(i, row_.reported[i]);
    if (!row_.reported.empty() || row_.top_count == 0) return;
    const auto count = static_cast<std::size_t>(row_.top_count);
    list_first(logits, count, -kInfinity);
    const auto middle = listed().begin() + static_cast<std::ptrdiff_t>(count);
    std::ranges::partial_sort(listed(), middle, sampling::before);
    for (std::size_t i = 0; i < count; ++i) put(i, work_.listed[i].id);
  }
  void report_chosen(const float* logits, const Softmax& softmax, const Candidate& last) const {
    std::atomic<std::int64_t> greater{0};
    for_pieces([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      greater.fetch_add(count_greater(logits + begin, end - begin, logits[*out_.id]),
                        std::memory_order_relaxed);
    });
    *out_.logprob = logprob(logits, softmax, last, *out_.id);
    *out_.rank = static_cast<std::int32_t>(greater.load(std::memory_order_relaxed)) + 1;
  }

  const Row row_;
  const RowOutput out_;
  const bool processed_;
  float* const logits_;
  const std::int64_t vocab_;
  Workspace& work_;
  ThreadPool* const pool_;

  float max_ = 0;
  Softmax softmax_;        // softmax of the kept tokens
  float least_ = 0;        // lower limit of the exponent, from min_p
  Candidate last_ = kEnd;  // last token, in sampling order, that the filters keep
  std::size_t listed_ = 0;
};

}  // namespace

Result<> reserve_sampling(Device& device, std::int64_t, std::int64_t vocab) {
  return static_cast<CpuDevice&>(device).stream().reserve_scratch(Workspace::bytes(vocab));
}

void sample(Stream& stream, const SampleArgs& args) {
  ThreadPool& pool = pool_of(stream);
  const std::int64_t rows = args.logits.size(0), vocab = args.logits.size(1);
  const auto workspace = [&](int rank) {
    return Workspace(cpu_stream(stream).scratch(rank, Workspace::bytes(vocab)), vocab);
  };
  if (rows < pool.size()) {
    Workspace work = workspace(0);
    for (std::int64_t r = 0; r < rows; ++r) RowSampler(args, r, work, &pool).run();
    return;
  }
  pool.for_units(rows, [&](int rank, std::int64_t r) {
    Workspace work = workspace(rank);
    RowSampler(args, r, work, nullptr).run();
  });
}

}  // namespace octavo::cpu
