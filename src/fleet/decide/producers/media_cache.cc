// mm-embeddings-cache-producer: finds which of the prompt's images, videos and audio were recently sent to
// each endpoint, because the endpoint has probably cached their embeddings.
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/index/recent_prefixes.h"

namespace octavo::fleet {
namespace {

// assumed size of the embeddings of one image, video or audio, as in llm-d
constexpr std::int64_t kItemMiB = 2;

class MediaCacheProducer : public Producer {
 public:
  explicit MediaCacheProducer(std::int64_t items_max) : recent_(static_cast<std::size_t>(items_max), 0) {}

  // Counts images, videos and audio instead of blocks.
  void produce(const Cycle& cycle, Overlap& overlap) override {
    overlap.clear();
    overlap.block_size = 0;
    for (const std::uint64_t& item : cycle.request.media) {
      recent_.match(std::span(&item, 1), found_);
      for (const EndpointId holder : found_.holders) {
        if (overlap.of(holder).blocks() == 0) overlap.holders.push_back(holder);
        ++overlap.at(holder).device;
      }
    }
    overlap.prompt_blocks = static_cast<std::uint32_t>(cycle.request.media.size());
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    recent_.sent(endpoint, cycle.request.media, cycle.now_us);
  }
  void forget(EndpointId endpoint) override { recent_.clear(endpoint); }
  void restarted(EndpointId endpoint) override { recent_.clear(endpoint); }

 private:
  RecentPrefixes recent_;
  Overlap found_;
};

}  // namespace

std::unique_ptr<Plugin> make_media_cache_producer(Parameters& parameters, Plugins&) {
  std::int64_t mib = 4096;
  // first the name in llm-d's example, then the name in llm-d's code
  for (const char* name : {"cacheSizeInMB", "cacheSizeInMBPerServer"})
    parameters.read(name, mib, kItemMiB, std::int64_t{1} << 30);
  return std::make_unique<MediaCacheProducer>(mib / kItemMiB);
}

}  // namespace octavo::fleet
