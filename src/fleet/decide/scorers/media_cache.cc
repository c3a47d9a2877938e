// mm-embeddings-cache-scorer: prefers endpoints that recently received many of the prompt's images, videos
// and audio.
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

class MediaCacheScorer : public Scorer {
 public:
  std::size_t producer = 0;  // index in Cycle::overlaps

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const Overlap& overlap = cycle.overlaps[producer];
    if (overlap.prompt_blocks == 0) return;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      scores[i] = static_cast<double>(overlap.of(candidates[i]->id).blocks()) / overlap.prompt_blocks;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_media_cache_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<MediaCacheScorer>();
  std::string producer = "mm-embeddings-cache-producer";
  parameters.read("producerName", producer);
  plugin->producer = plugins.producer(producer, parameters, "producerName");
  return plugin;
}

}  // namespace octavo::fleet
