// The sample operator: one thread block per row, without sorting.
//
// min_p, top_k and top_p keep the first tokens in order of probability, so the last kept token defines the
// set. Bisection finds this token: first over the logits, mapped to integers with the same order; then, among
// equal logits, over the ids. Each bisection step adds up the number or the integer mass of the tokens above
// a bound. After a few steps, the remaining candidates fit into shared memory. Sums of integers do not depend
// on the order, so every backend keeps the same tokens.
//
// This file is compiled without fused multiply-adds (sampling_math.h).
#include "kernels/cuda/views.h"
#include "kernels/operators/sample.h"

namespace octavo::cuda {
namespace {

using sampling::Softmax;
using Key = std::uint32_t;
using Mass = std::uint64_t;

constexpr int kThreads = 1024;
constexpr int kFew = 4096;    // maximum number of candidates that are copied to shared memory
constexpr int kByValue = 16;  // number of initial bisection steps that halve a range of logits instead of
                              // keys
constexpr int kWarps = kThreads / kWarp;

// Maps floats to integers with the same order; both zeros are equal.
__device__ Key key_of(float logit) {
  const std::uint32_t bits = float_to_bits(logit + 0.0f);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

__device__ float logit_of(Key key) { return bits_to_float((key >> 31) != 0 ? key & 0x7fffffff : ~key); }

// Key and id of the last token that is kept.
struct Bound {
  Key key;
  std::int64_t id;
  __device__ bool keeps(Key k, std::int64_t i) const { return k > key || (k == key && i <= id); }
};

struct Shared {
  Mass masses[kWarp];
  Mass of_warps[kWarps];
  std::int64_t drawn;
  Key keys[kFew];
  std::int32_t ids[kFew];
  int few;
};

// One of the lists of a row (RowLists).
struct List {
  const std::int32_t* ids;
  std::int64_t begin, count;
  __device__ List(const RowLists& lists, std::int64_t row)
      : ids(items<std::int32_t>(lists.ids)), begin(0), count(0) {
    if (!lists.starts) return;
    const std::int32_t* starts = items<std::int32_t>(lists.starts);
    begin = starts[row];
    count = starts[row + 1] - begin;
  }
  __device__ std::int64_t id(std::int64_t i) const { return ids[begin + i]; }
};

// Samples one row in one thread block. All threads of the block must call every function.
class RowSampler {
 public:
  __device__ RowSampler(const SampleArgs& p, float* raw, std::int64_t row, Shared& shared)
      : p_(p),
        raw_(raw),
        row_(row),
        vocab_(p.logits.size(1)),
        shared_(shared),
        logits_(&element<float>(p.logits, row, 0)),
        bias_(p.bias, row),
        history_(p.history, row),
        reported_(p.reported, row),
        rule_(items<DrawRule>(p.rules)[row]) {}

  __device__ void run() {
    if (!find_max(logits_)) return reject();
    const float raw_max = max_;
    const float* raw = logits_;
    if (rule_.forced >= 0) return finish(raw, raw_max, rule_.forced);
    if (changes_logits()) {
      if (rule_.reports() && !p_.processed) raw = keep_raw();
      change();
      if (!find_max(logits_)) return reject();
    }
    softmax_ = {max_, rule_.greedy() ? 1.0f : 1.0f / rule_.temperature, 0};
    Bound kept{0, vocab_};
    std::int64_t id = 0;
    if (rule_.greedy()) {
      id = next_in_order(logits_, {~Key{0}, vocab_}).id;
      softmax_.total = rule_.reports() && p_.processed ? total_mass(logits_, kept) : 0;
    } else {
      kept = last_kept();
      softmax_.total = total_mass(logits_, kept);
      id = draw(kept);
    }
    if (!p_.processed) return finish(raw, raw_max, id);
    put(id);
    if (rule_.reports()) report(logits_, kept, id);
  }

 private:
  __device__ bool changes_logits() const {
    return bias_.count > 0 || history_.count > 0 || rule_.mask_row >= 0;
  }
  __device__ bool allowed(std::int64_t id) const {
    const auto word = static_cast<std::uint32_t>(element<std::int32_t>(p_.mask, rule_.mask_row, id / 32));
    return (word >> (id % 32) & 1) != 0;
  }

  template <class Body>
  __device__ void for_tokens(Body body) const {
#pragma unroll 8  // Unrolled, so that logits are read early.
    for (std::int64_t id = thread(); id < vocab_; id += kThreads) body(id);
  }
  __device__ Mass sum(Mass mine) { return block_sum(mine, shared_.masses); }
  __device__ Mass most(Mass mine) { return block_max(mine, shared_.masses); }

  // Sets max_. Returns false if a logit is NaN or plus infinity, or if all are minus infinity.
  __device__ bool find_max(const float* logits) {
    Key key = 0;
    bool broken = false;
    for_tokens([&](std::int64_t id) {
      const float x = logits[id];
      broken = broken || x != x || x == INFINITY;
      const Key k = key_of(x);
      key = k > key ? k : key;
    });
    constexpr Mass kBroken = Mass{1} << 40;
    const Mass found = most(broken ? kBroken : key);
    max_key_ = static_cast<Key>(found);
    max_ = logit_of(max_key_);
    return found < kBroken && max_ != -INFINITY;
  }

  __device__ const float* keep_raw() {
    float* raw = raw_ + element_at(row_, vocab_, 0);
    for_tokens([&](std::int64_t id) { raw[id] = logits_[id]; });
    return raw;
  }

  // Applies mask, bias and penalties. Ids in a list are distinct, so threads can process different entries.
  __device__ void change() {
    if (rule_.mask_row >= 0)
      for_tokens([&](std::int64_t id) {
        if (!allowed(id)) logits_[id] = -INFINITY;
      });
    __syncthreads();
    for (std::int64_t i = thread(); i < bias_.count; i += kThreads)
      logits_[bias_.id(i)] += items<float>(p_.bias_values)[bias_.begin + i];
    __syncthreads();
    for (std::int64_t i = thread(); i < history_.count; i += kThreads) {
      float& logit = logits_[history_.id(i)];
      logit = rule_.penalised(logit, items<std::int32_t>(p_.history_counts)[history_.begin + i]);
    }
    __syncthreads();
  }

  // Returns the first token in order after `last`.
  __device__ Bound next_in_order(const float* logits, const Bound& last) {
    Mass best = 0;  // greatest key; of equal keys, the lowest id
    for_tokens([&](std::int64_t id) {
      const Key key = key_of(logits[id]);
      if (last.id < vocab_ && last.keeps(key, id)) return;
      const Mass rank = Mass{key} << 32 | (0xffffffff - static_cast<Mass>(id));
      best = rank > best ? rank : best;
    });
    best = most(best);
    return {static_cast<Key>(best >> 32), static_cast<std::int64_t>(0xffffffff - (best & 0xffffffff))};
  }

  __device__ Bound last_kept() {
    Bound kept{0, vocab_};
    const float least = rule_.least_exponent();
    if (least > -INFINITY) {
      Key lowest = ~Key{0};
      for_tokens([&](std::int64_t id) {
        const Key key = key_of(logits_[id]);
        if (softmax_.exponent(logits_[id]) >= least && key < lowest) lowest = key;
      });
      kept.key = static_cast<Key>(~most(~static_cast<Key>(lowest) & Mass{0xffffffff}));
    }
    const std::int64_t top_k = rule_.top_k;
    const auto one = [](float) { return Mass{1}; };
    if (top_k > 0 && top_k < vocab_) kept = shortened(kept, static_cast<Mass>(top_k), one);
    const float top_p = rule_.top_p;
    if (top_p >= 1) return kept;
    const auto mass = [&](float logit) { return softmax_.mass(logit); };
    return shortened(kept, sampling::mass_to_keep(top_p, total_mass(logits_, kept)), mass);
  }

  // Number of kept tokens with a key in [low, high], and the sum of their weights.
  struct Range {
    Mass tokens, weight;
  };
  template <class Weight>
  __device__ Range range_between(const Bound& kept, Key low, Key high, Weight weight) {
    Range mine{0, 0};
    for_tokens([&](std::int64_t id) {
      const Key key = key_of(logits_[id]);
      if (key < low || key > high || !kept.keeps(key, id)) return;
      ++mine.tokens;
      mine.weight += weight(logits_[id]);
    });
    return {sum(mine.tokens), sum(mine.weight)};
  }
  // Copies the tokens of a range (at most kFew) to shared memory, in any order.
  __device__ void collect(const Bound& kept, Key low, Key high) {
    __syncthreads();
    if (thread() == 0) shared_.few = 0;
    __syncthreads();
    for_tokens([&](std::int64_t id) {
      const Key key = key_of(logits_[id]);
      if (key < low || key > high || !kept.keeps(key, id)) return;
      const int few_index = atomicAdd(&shared_.few, 1);
      shared_.keys[few_index] = key;
      shared_.ids[few_index] = static_cast<std::int32_t>(id);
    });
    __syncthreads();
  }
  // Returns the sum of weight(key, id) over the tokens in shared memory.
  template <class Weight>
  __device__ Mass sum_of_few(Weight weight) {
    Mass mine = 0;
    for (int i = thread(); i < shared_.few; i += kThreads) mine += weight(shared_.keys[i], shared_.ids[i]);
    return sum(mine);
  }

  // Returns a key in (low, high], where bisection continues. At first it halves the range of logits, but
  // stays near the upper end, because keys are dense around zero.
  __device__ Key middle_of(Key low, Key high, int step) const {
    if (step < kByValue) {
      const float upper = logit_of(high), least = upper - 64 / softmax_.inverse_temperature;
      const float lower = logit_of(low) > least ? logit_of(low) : least;
      const Key key = key_of(lower + (upper - lower) / 2);
      if (key > low && key <= high) return key;
    }
    return low + (high - low) / 2 + 1;
  }

  // Returns the first token in order at which the sum of weights reaches `target`; `kept` if the total is
  // less.
  template <class Weight>
  __device__ Bound shortened(const Bound& kept, Mass target, Weight weight) {
    Key low = kept.key, high = max_key_;  // bounds of the key of the wanted token
    Mass above = 0;                       // sum of the weights of tokens with a key above `high`
    Range inside = range_between(kept, low, high, weight);
    if (inside.weight < target) return kept;
    bool few = false;
    for (int step = 0; low < high; ++step) {
      if (!few && inside.tokens <= kFew) {
        collect(kept, low, high);
        few = true;
      }
      const Key middle = middle_of(low, high, step);
      Range upper{0, 0};
      if (few) {
        upper.weight = sum_of_few([&](Key key, std::int64_t) {
          return key >= middle && key <= high ? weight(logit_of(key)) : 0;
        });
      } else {
        upper = range_between(kept, middle, high, weight);
      }
      if (above + upper.weight >= target) {
        low = middle;
        inside = upper;
      } else {
        above += upper.weight;
        high = middle - 1;
        inside.tokens -= upper.tokens;
      }
    }
    // Tokens with the same key have the same weight.
    const Mass each = weight(logit_of(low));
    return {low, nth_of_key(kept, low, (target - above + each - 1) / each, few)};
  }

  // Returns the id of the n-th kept token with this key. few: the tokens are in shared memory.
  __device__ std::int64_t nth_of_key(const Bound& kept, Key key, Mass n, bool few) {
    std::int64_t low = 0, high = vocab_ - 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      Mass found = 0;
      if (few) {
        found = sum_of_few([&](Key k, std::int64_t id) { return Mass{k == key && id <= middle}; });
      } else {
        for_tokens([&](std::int64_t id) {
          if (id <= middle && key_of(logits_[id]) == key && kept.keeps(key, id)) ++found;
        });
        found = sum(found);
      }
      if (found >= n) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  __device__ Mass total_mass(const float* logits, const Bound& kept) {
    Mass mine = 0;
    for_tokens([&](std::int64_t id) {
      if (kept.keeps(key_of(logits[id]), id)) mine += softmax_.mass(logits[id]);
    });
    return sum(mine);
  }

  // ---- Random draw: each warp adds up a range of ids. The warp whose range contains the drawn point
  // searches in it.

  __device__ Mass kept_mass(const Bound& kept, std::int64_t id) const {
    return kept.keeps(key_of(logits_[id]), id) ? softmax_.mass(logits_[id]) : 0;
  }
  __device__ std::int64_t draw(const Bound& kept) {
    Mass point = sampling::drawn_point(rule_.random, softmax_.total);
    const std::int64_t stretch = (vocab_ + kThreads - 1) / kThreads * kWarp;
    const std::int64_t begin = warp() * stretch;
    const std::int64_t end = begin + stretch < vocab_ ? begin + stretch : vocab_;
    Mass mine = 0;
    for (std::int64_t id = begin + lane(); id < end; id += kWarp) mine += kept_mass(kept, id);
    mine = warp_sum(mine);
    if (lane() == 0) shared_.of_warps[warp()] = mine;
    __syncthreads();
    int owner = 0;
    while (point >= shared_.of_warps[owner]) point -= shared_.of_warps[owner++];
    if (warp() == owner) walk(kept, begin, end, point);
    __syncthreads();
    return shared_.drawn;
  }
  __device__ void walk(const Bound& kept, std::int64_t begin, std::int64_t end, Mass point) {
    for (std::int64_t first = begin; first < end; first += kWarp) {
      const std::int64_t id = first + lane();
      Mass up_to = id < end ? kept_mass(kept, id) : 0;  // mass of this lane's token and of the tokens of
                                                        // lower lanes
      for (int step = 1; step < kWarp; step *= 2) {
        const Mass before = __shfl_up_sync(kAllLanes, up_to, step);
        if (lane() >= step) up_to += before;
      }
      const unsigned beyond = __ballot_sync(kAllLanes, up_to > point);
      if (beyond != 0) {
        if (lane() == 0) shared_.drawn = first + __ffs(beyond) - 1;
        return;
      }
      point -= __shfl_sync(kAllLanes, up_to, kWarp - 1);
    }
  }

  __device__ void put(std::int64_t id) const {
    if (thread() == 0) items<std::int32_t>(p_.out_id)[row_] = static_cast<std::int32_t>(id);
  }

  // Writes the logprobs, which are those of the unprocessed distribution.
  __device__ void finish(const float* raw, float raw_max, std::int64_t id) {
    put(id);
    if (!rule_.reports()) return;
    const Bound all{0, vocab_};
    softmax_ = {raw_max, 1, 0};
    softmax_.total = total_mass(raw, all);
    report(raw, all, id);
  }

  __device__ float logprob(const float* logits, const Bound& kept, std::int64_t id) const {
    const float logit = logits[id];
    return kept.keeps(key_of(logit), id) ? softmax_.logprob(logit) : kLogprobFloor;
  }

  __device__ void report(const float* logits, const Bound& kept, std::int64_t id) {
    Mass greater = 0;
    const float chosen = logits[id];
    for_tokens([&](std::int64_t other) { greater += logits[other] > chosen ? 1 : 0; });
    greater = sum(greater);
    if (thread() == 0) {
      items<std::int32_t>(p_.out_rank)[row_] = static_cast<std::int32_t>(greater) + 1;
      items<float>(p_.out_logprob)[row_] = logprob(logits, kept, id);
    }
    for (std::int64_t i = thread(); i < reported_.count; i += kThreads)
      report_one(i, logits, kept, reported_.id(i));
    if (reported_.count > 0) return;
    Bound last{~Key{0}, vocab_};
    for (std::int64_t i = 0; i < rule_.top_count; ++i) {
      last = next_in_order(logits, last);
      if (thread() == 0) report_one(i, logits, kept, last.id);
    }
  }
  __device__ void report_one(std::int64_t i, const float* logits, const Bound& kept, std::int64_t id) const {
    element<std::int32_t>(p_.out_top_ids, row_, i) = static_cast<std::int32_t>(id);
    element<float>(p_.out_top_logprobs, row_, i) = logprob(logits, kept, id);
  }

  // Writes the outputs of a row without a token.
  __device__ void reject() const {
    put(-1);
    if (!rule_.reports()) return;
    if (thread() == 0) {
      items<float>(p_.out_logprob)[row_] = kLogprobFloor;
      items<std::int32_t>(p_.out_rank)[row_] = 0;
    }
    const std::int64_t count = reported_.count > 0 ? reported_.count : rule_.top_count;
    for (std::int64_t i = thread(); i < count; i += kThreads) {
      element<std::int32_t>(p_.out_top_ids, row_, i) = -1;
      element<float>(p_.out_top_logprobs, row_, i) = kLogprobFloor;
    }
  }

  const SampleArgs& p_;
  float* const raw_;  // [rows, vocab]: buffer for the unprocessed logits; null if nothing changes the logits
  const std::int64_t row_, vocab_;
  Shared& shared_;
  float* const logits_;
  const List bias_, history_, reported_;
  const DrawRule rule_;
  float max_ = 0;  // maximum of the current logits
  Key max_key_ = 0;
  Softmax softmax_;
};

__global__ void __launch_bounds__(kThreads) sample_kernel(SampleArgs p, float* raw) {
  wait_for_kernels();
  OCTAVO_SHARED(Shared, shared, );
  RowSampler(p, raw, block_x(), shared).run();
}

}  // namespace

void run_sample(Stream& stream, const SampleArgs& args) {
  const std::int64_t rows = args.logits.size(0), vocab = args.logits.size(1);
  const bool changed = args.history.starts || args.bias.starts || args.mask;
  float* raw = nullptr;
  if (changed && !args.processed) raw = scratch_of(stream, rows * vocab);
  launch(handle_of(stream), row_grid(rows), kThreads, 0, sample_kernel, args, raw);
}

}  // namespace octavo::cuda
