// For tests: engines with cache tiers in host memory and on disk.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "engine/testing/rig.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

inline KvTransferOptions tier_options(const ScratchDirectory& folder,
                                      std::int64_t bytes = std::int64_t{1} << 30) {
  return {.enabled = true,
          .tier = KvTierOptions{.path_or_url = folder.path(), .bytes = bytes, .load_always = true}};
}

inline KvTransferOptions host_options(std::int64_t bytes) {
  return {.enabled = true, .tier = KvTierOptions{.host_bytes = bytes, .load_always = true}};
}

// Returns true if no transfer is in flight and no blocks are held.
inline bool at_rest(const Engine& engine) { return engine.own_stats().kv_transfer.held_blocks == 0; }

// A simulated engine, in which a wrong block causes a wrong token.
struct TierRig : Rig {
  using Rig::Rig;
  Recorder::Record ask(const std::vector<TokenId>& prompt, int tokens) {
    auto sink = std::make_shared<Recorder>();
    EXPECT_TRUE(engine->submit(request_for(prompt, tokens), sink));
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expected(prompt, tokens));
    generated += tokens;
    return sink->record();
  }
  int cached(const std::vector<TokenId>& prompt, int tokens = 3) {
    return ask(prompt, tokens).ends[0].cached_tokens;
  }
  // Waits for the counters, because the engine updates them after the sink gets the last output.
  void rest() {
    EXPECT_TRUE(
        eventually([&] { return engine->own_stats().tokens.generation >= generated && at_rest(*engine); }));
  }
  void forget() {
    rest();
    engine->reset_prefix_cache();
  }
  KvTierStats tier() const { return engine->own_stats().kv_tier; }

  std::int64_t generated = 0;
};

}  // namespace octavo
