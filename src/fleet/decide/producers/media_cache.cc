// mm-embeddings-cache-producer: which of the prompt's images, videos and sounds each endpoint was lately
// sent, and so probably has encoded.
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/index/recent_prefixes.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kItemMiB = 2;  // of an encoder's cache, as in llm-d

class MediaCacheProducer : public Producer {
 public:
  explicit MediaCacheProducer(std::int64_t items_max) : recent_(static_cast<std::size_t>(items_max), 0) {}

  // Counts media items, not tokens of the prompt.
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
  for (const char* name : {"cacheSizeInMB", "cacheSizeInMBPerServer"})  // llm-d's sample, and its code
    parameters.read(name, mib, kItemMiB, std::int64_t{1} << 30);
  return std::make_unique<MediaCacheProducer>(mib / kItemMiB);
}

}  // namespace octavo::fleet
