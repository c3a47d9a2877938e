#include "transfer/tiers/eviction_order.h"

#include <algorithm>
#include <array>
#include <list>
#include <unordered_map>

namespace octavo {
namespace {

using Keys = std::list<Hash128>;  // The first key is evicted next.

class Lru final : public EvictionOrder {
 public:
  void add(Hash128 key) override {
    const auto [found, is_new] = entries_.try_emplace(key);
    if (is_new) found->second = keys_.insert(keys_.end(), key);
  }
  void use(Hash128 key) override {
    if (const auto found = entries_.find(key); found != entries_.end())
      keys_.splice(keys_.end(), keys_, found->second);
  }
  Hash128 evict() override {
    const Hash128 key = keys_.front();
    remove(key);
    return key;
  }
  bool remove(Hash128 key) override {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return false;
    keys_.erase(found->second);
    entries_.erase(found);
    return true;
  }
  bool contains(Hash128 key) const override { return entries_.contains(key); }
  std::size_t size() const override { return entries_.size(); }
  std::vector<Hash128> keys() const override { return {keys_.begin(), keys_.end()}; }

 private:
  Keys keys_;
  std::unordered_map<Hash128, Keys::iterator, HashOfHash> entries_;
};

// ARC (Megiddo and Modha, FAST 2003). ARC has two lists of stored blocks: those that one prompt has used, and
// those that several prompts have used. For each list it also remembers the keys that it evicted last. If a
// block whose key is remembered is stored again, its list was too small and gets a larger share. So prompts
// that occur only once do not evict common prefixes.
class Arc final : public EvictionOrder {
 public:
  explicit Arc(std::size_t most) : most_(most) {}

  void add(Hash128 key) override {
    const auto [found, is_new] = entries_.try_emplace(key, Entry{kOnce});
    Entry& mine = found->second;
    if (is_new) {
      mine.at = keys_[kOnce].insert(keys_[kOnce].end(), key);
    } else if (mine.list >= kOnceEvicted) {
      const bool once = mine.list == kOnceEvicted;
      const std::size_t step =
          std::max<std::size_t>(1, size_of(once ? kOftenEvicted : kOnceEvicted) / size_of(mine.list));
      share_once_ = once ? std::min(most_, share_once_ + step) : share_once_ - std::min(share_once_, step);
      move(mine, kOften);
    }
    forget_oldest();
  }
  void use(Hash128 key) override {
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.list >= kOnceEvicted) return;
    Entry& mine = found->second;
    move(mine, mine.list == kOnce && !mine.used ? kOnce : kOften);
    mine.used = true;
  }
  Hash128 evict() override {
    const bool once = size_of(kOften) == 0 || size_of(kOnce) > share_once_;
    const Hash128 key = keys_[once ? kOnce : kOften].front();
    move(entries_.at(key), once ? kOnceEvicted : kOftenEvicted);
    forget_oldest();
    return key;
  }
  bool remove(Hash128 key) override {
    if (!contains(key)) return false;
    forget(key);
    return true;
  }
  bool contains(Hash128 key) const override {
    const auto found = entries_.find(key);
    return found != entries_.end() && found->second.list < kOnceEvicted;
  }
  std::size_t size() const override { return size_of(kOnce) + size_of(kOften); }
  std::vector<Hash128> keys() const override {
    std::vector<Hash128> keys(keys_[kOnce].begin(), keys_[kOnce].end());
    keys.insert(keys.end(), keys_[kOften].begin(), keys_[kOften].end());
    return keys;
  }

 private:
  enum List : std::uint8_t { kOnce, kOften, kOnceEvicted, kOftenEvicted };
  struct Entry {
    List list;
    bool used = false;  // true: the prompt that wrote the block has been counted as a use
    Keys::iterator at{};
  };

  std::size_t size_of(List list) const { return keys_[list].size(); }
  void move(Entry& found, List to) {
    keys_[to].splice(keys_[to].end(), keys_[found.list], found.at);
    found.list = to;
  }
  void forget(Hash128 key) {
    const auto found = entries_.find(key);
    keys_[found->second.list].erase(found->second.at);
    entries_.erase(found);
  }
  void forget_oldest() {
    while (size_of(kOnceEvicted) > 0 && size_of(kOnce) + size_of(kOnceEvicted) > most_)
      forget(Hash128(keys_[kOnceEvicted].front()));
    while (size_of(kOftenEvicted) > 0 && entries_.size() > 2 * most_)
      forget(Hash128(keys_[kOftenEvicted].front()));
  }

  const std::size_t most_;
  // target size of the list kOnce
  std::size_t share_once_ = 0;
  std::array<Keys, 4> keys_;
  std::unordered_map<Hash128, Entry, HashOfHash> entries_;
};

}  // namespace

std::unique_ptr<EvictionOrder> make_eviction_order(EvictionPolicy policy, std::size_t most) {
  if (policy == EvictionPolicy::arc) return std::make_unique<Arc>(most);
  return std::make_unique<Lru>();
}

}  // namespace octavo
