#include "engine/loop/batch_media.h"

#include <algorithm>

namespace octavo {
namespace {

// Adds the rows of a media part that the planned tokens use. `sequence` is the index of the sequence in the
// batch.
void add_rows(const PlannedSequence& s, std::size_t sequence, const MediaPart& part, int slot, Batch& batch) {
  // Number of consecutive prompt tokens: the whole part, or one row of its token grid.
  const int run = part.row_breaks ? part.columns : part.tokens;
  for (int row = 0, at = part.first; row < part.tokens; row += run, at += run + 1) {
    const int first = std::max(at, s.first);
    const int end = std::min(at + run, s.first + s.count);
    if (first < end)
      batch.images.push_back({batch.query_starts[sequence] + first - s.first, end - first, slot,
                              row + first - at, static_cast<std::int32_t>(sequence)});
  }
}

}  // namespace

void add_media(const StepPlan& plan, AnswerTable& answers, Batch& batch) {
  batch.images.clear();
  batch.wholes.clear();
  batch.sources.clear();
  for (std::vector<std::int32_t>& axis : batch.axes) axis.clear();
  const bool grids = std::ranges::any_of(plan.sequences, [&](const PlannedSequence& s) {
    const std::vector<MediaPart>& images = answers[s.tag].accepted->request.media;
    return !images.empty() && images[0].tokens > 0 && images[0].columns > 0 && !images[0].row_breaks;
  });
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const PlannedSequence& s = plan.sequences[i];
    const Accepted& accepted = *answers[s.tag].accepted;
    if (grids) append_grid_positions(accepted.request.media, s.first, s.end() - s.first, batch.axes);
    for (std::size_t k = 0; k < accepted.encoded.size(); ++k) {
      const MediaPart& part = accepted.request.media[k];
      if (part.tokens == 0) batch.sources.push_back(accepted.encoded[k]->slot);
      add_rows(s, i, part, accepted.encoded[k]->slot, batch);
    }
    for (const auto& [begin, end] : accepted.wholes) {
      const int first = std::max(begin, s.first), last = std::min(end, s.first + s.count);
      if (first < last)
        batch.wholes.push_back(
            {batch.query_starts[i] + first - s.first, last - first, static_cast<std::int32_t>(i)});
    }
  }
}

}  // namespace octavo
