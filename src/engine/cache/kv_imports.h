// Imports KV blocks (kv_import.h). Loaded blocks enter the prefix cache before the waiting request is
// scheduled, so the request finds them like any cached prefix. Other requests run during the load. The
// engine computes all blocks that cannot be loaded.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/cache/kv_cache_side.h"
#include "engine/cache/kv_import.h"

namespace octavo {

class KvImports {
 public:
  // `room_us` is the maximum time that a request waits for free blocks, in microseconds.
  KvImports(KvCacheSide& side, std::int64_t room_us) : side_(side), room_us_(room_us) {}

  // See KvTransfers::ready.
  bool ready(const std::shared_ptr<Accepted>& accepted, std::int64_t now_us);
  // Reports that a load has ended. Thread-safe.
  void add_result(LoadResult result);
  // Processes the results, gives up stuck loads and tries the waiting requests again. Returns the requests
  // that became ready. For `compute_seconds`, see KvConnector::worth_loading.
  std::vector<RequestId> advance(std::int64_t now_us, double compute_seconds);
  // Removes the imports of requests that are scheduled or have ended, and imports that neither wait nor
  // hold blocks.
  void drop_done() { drop(true); }
  // Frees the loaded blocks of the newest request that has loaded blocks. Returns false if there is no such
  // request.
  bool give_way();

  void cancel_all();  // call it before the connectors are destroyed
  void let_go_all();  // call it after the connectors are destroyed
  bool empty() const { return imports_.empty(); }

 private:
  struct Source {
    KvConnector* connector = nullptr;  // connector with the blocks of the prompt; null: no connector has any
    int blocks = 0;
  };

  KvImport::State begin(KvImport& import, std::int64_t now_us);
  std::optional<Source> best_source(const KvPrompt& prompt) const;
  KvImport::State load(KvImport& import, const KvPrompt& prompt, const Source& source, PrefixHold* held);
  KvImport::State compute(const KvPrompt& prompt);
  KvImport::State give_up(const KvImport& import);
  void decline_all(const KvPrompt& prompt, const KvConnector* except = nullptr);
  bool any_loads() const;
  bool loads(Hash128 key) const;
  void take_results(std::vector<RequestId>& ready);
  void take(KvImport& import, const LoadResult& result);
  void note_hits(Accepted& accepted, std::int64_t tokens, const LoadResult& result);
  void give_up_stuck(std::int64_t now_us, std::vector<RequestId>& ready);
  template <class Waiting>
  void retry(std::int64_t now_us, std::vector<RequestId>& ready);
  void drop(bool done);

  KvCacheSide& side_;
  const std::int64_t room_us_;
  double compute_seconds_ = 0;
  std::map<RequestId, KvImport> imports_;

  std::mutex mutex_;
  std::vector<LoadResult> results_;  // guarded by mutex_
};

}  // namespace octavo
