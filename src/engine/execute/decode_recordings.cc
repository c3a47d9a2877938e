#include "engine/execute/decode_recordings.h"

#include <algorithm>

#include "base/check.h"

namespace octavo {
namespace {

// Maximum number of sequences of a captured step. The device takes longer for a larger step than the host
// takes to launch its kernels, so a CUDA graph would save no time.
constexpr int kMost = 512;

// Returns the next larger size for which a CUDA graph is captured. Matrix products process 16 or 64 rows at a
// time, so padding a step to this size costs little.
int after(int size) {
  if (size < 16) return 2 * size;
  return size + (size < 64 ? 16 : 32);
}

}  // namespace

DecodeRecordings::DecodeRecordings(int most) {
  most = std::min(most, kMost);
  for (int size = 1; size < most; size = after(size)) sizes_.push_back(size);
  if (most > 0) sizes_.push_back(most);
  entries_.resize(sizes_.size());
}

int DecodeRecordings::size_of(const Batch& batch) const {
  const int sequences = static_cast<int>(batch.lengths.size());
  if (batch.tokens() != sequences) return 0;
  for (int s = 0; s < sequences; ++s)
    if (batch.query_starts[static_cast<std::size_t>(s)] != s) return 0;
  const auto size = std::ranges::lower_bound(sizes_, sequences);
  return size == sizes_.end() ? 0 : *size;
}

void DecodeRecordings::run(Stream& stream, int size, const std::function<void()>& work) {
  const auto at = std::ranges::lower_bound(sizes_, size);
  CHECK(at != sizes_.end() && *at == size, "no recordings of size {}", size);
  Entry& entry = entries_[static_cast<std::size_t>(at - sizes_.begin())];
  if (!entry.ran) {
    entry.ran = true;
    return work();
  }
  if (entry.recording == nullptr) entry.recording = stream.record(work);
  stream.replay(*entry.recording);
}

void DecodeRecordings::forget() {
  for (Entry& entry : entries_) entry = {};
}

}  // namespace octavo
