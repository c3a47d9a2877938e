#include "engine/cache/kept_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <random>

namespace octavo {
namespace {

constexpr int kKeptBlockTokens = 16, kBlocks = 96;
constexpr std::size_t kBytes = kKeptBlockTokens * sizeof(std::uint64_t);  // bytes of a block

using Text = std::vector<TokenId>;

// Returns the value that the cache group `group` stores for the last token of the text.
std::uint64_t stored_value(std::span<const TokenId> text, int group) {
  return hash_bytes(HashAlgorithm::xxh3_128, std::as_bytes(text), static_cast<std::uint64_t>(group)).low;
}

// Group number with which stored_value() gives the content of a saved state.
constexpr int kStates = 100;

SchedulerOptions options_for(const std::vector<CacheGroup>& groups, int saved_states) {
  SchedulerOptions options;
  options.saved_states = saved_states;
  options.mamba_block_size = 32;
  options.num_blocks = kBlocks;
  options.groups = groups;
  options.max_num_batched_tokens = 48;
  options.max_num_seqs = 4;
  options.max_model_len = 400;
  options.max_sequences = 16;
  options.max_steps_in_flight = 1;
  return options;
}

// An engine's process: a scheduler, and blocks in the memory of the server's process. Its steps write
// stored_value() to the blocks.
struct Process {
  std::unique_ptr<Scheduler> scheduler;
  KeptCache::Opened kept;
  std::vector<BlockId> restored;
  StepPlan plan;

  Process(const SharedMemory& server, const std::vector<CacheGroup>& groups, std::uint64_t model = 1,
          int saved_states = 0) {
    SchedulerOptions options = options_for(groups, saved_states);
    const KeptShape shape{.blocks = {kBlocks, kKeptBlockTokens, {model, 0}},
                          .block_bytes = kBytes,
                          .state_slots = options.max_num_seqs + saved_states,
                          .saved_states = saved_states,
                          .state_bytes = sizeof(std::uint64_t)};
    kept = KeptCache::open(dup(server.fd()), shape).value();
    options.prefix_hash.seed = kept.cache->hash_seed();
    scheduler = Scheduler::create(std::move(options)).value();
    restored = kept.cache->restore(*scheduler, 2);
    scheduler->check();
  }

  std::uint64_t& value(BlockId block, int position) {
    std::byte* const first = &kept.blocks.bytes[static_cast<std::size_t>(block) * kBytes];
    return reinterpret_cast<std::uint64_t*>(first)[position % kKeptBlockTokens];
  }

  std::uint64_t& state(int slot) { return reinterpret_cast<std::uint64_t*>(kept.blocks.states.data())[slot]; }

  // Runs a step. Each sequence ends when it has max_total_tokens tokens, whose values are random.
  bool step(std::mt19937& random) {
    scheduler->plan(plan);
    if (plan.empty()) return false;
    for (const PlannedSequence& p : plan.sequences) {
      const Sequence& s = *scheduler->find(p.sequence);
      for (int g = 0; g < scheduler->cache().group_count(); ++g)
        for (int at = p.first; at < p.first + p.count; ++at)
          value(p.blocks->table(g)[static_cast<std::size_t>(at / kKeptBlockTokens)], at) =
              stored_value(std::span(s.tokens).first(static_cast<std::size_t>(at) + 1), g);
      if (p.state_to != kNoState)
        state(p.state_to) =
            stored_value(std::span(s.tokens).first(static_cast<std::size_t>(p.end())), kStates);
    }
    scheduler->collect(plan.step);
    for (const PlannedSequence& p : plan.sequences) {
      if (!p.samples) continue;
      scheduler->commit(p.sequence, static_cast<TokenId>(random() % 3));
      const Sequence& s = *scheduler->find(p.sequence);
      if (std::ssize(s.tokens) == s.spec.max_total_tokens) scheduler->finish(p.sequence);
    }
    return true;
  }

  void run(const Text& prompt, int output = 1) {
    std::mt19937 random(1);
    const int total = static_cast<int>(prompt.size()) + output;
    ASSERT_TRUE(scheduler->add({.prompt = prompt, .max_total_tokens = total}));
    while (step(random)) {
    }
  }

  PrefixMatch find(const Text& prompt) const {
    std::vector<Hash128> keys;
    PrefixHasher(scheduler->options().prefix_hash, kKeptBlockTokens).extend(prompt, {}, keys);
    PrefixMatch match;
    find_prefix(scheduler->cache(), {.tokens = prompt, .keys = keys, .extra = {}}, match);
    return match;
  }

  // Returns the number of cached tokens of a prompt. Expects that all blocks of the prefix have the right
  // values.
  int cached(const Text& prompt) {
    const PrefixMatch match = find(prompt);
    for (std::size_t g = 0; g < match.tables.size(); ++g)
      for (int at = 0; at < match.blocks * kKeptBlockTokens; ++at)
        if (const BlockId b = match.tables[g][static_cast<std::size_t>(at / kKeptBlockTokens)];
            b != kNoBlock) {
          EXPECT_EQ(value(b, at), stored_value(std::span(prompt).first(static_cast<std::size_t>(at) + 1),
                                               static_cast<int>(g)));
        }
    const int tokens = match.blocks * kKeptBlockTokens;
    if (match.state_slot != kNoState) {
      EXPECT_EQ(state(match.state_slot),
                stored_value(std::span(prompt).first(static_cast<std::size_t>(tokens)), kStates));
    }
    return tokens;
  }
};

Text text_of(int seed, int length) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Text text(static_cast<std::size_t>(length));
  for (TokenId& token : text) token = static_cast<TokenId>(random() % 1000);
  return text;
}

TEST(KeptCache, TheNextProcessHasThePrefixes) {
  const SharedMemory server = SharedMemory::create_unsized().value();
  {
    Process first(server, {{}});
    EXPECT_TRUE(first.restored.empty());
    first.run(text_of(1, 100));
    first.run(text_of(2, 50));
  }
  Process second(server, {{}});
  EXPECT_EQ(second.restored.size(), 6u + 3u);
  EXPECT_EQ(second.kept.cache->stats().kept, 9);
  EXPECT_EQ(second.kept.cache->stats().discarded, 0);
  EXPECT_EQ(second.cached(text_of(1, 100)), 96);
  EXPECT_EQ(second.cached(text_of(2, 50)), 48);
  EXPECT_EQ(second.cached(text_of(3, 50)), 0);
  second.run(text_of(3, 50));
  Process third(server, {{}});
  EXPECT_EQ(third.restored.size(), 12u);
  EXPECT_EQ(third.kept.cache->stats().kept, 9 + 12);
}

TEST(KeptCache, ADamagedBlockAndItsContinuationsAreComputedAgain) {
  const SharedMemory server = SharedMemory::create_unsized().value();
  const Text text = text_of(1, 100);
  {
    Process first(server, {{}});
    first.run(text);
    ++first.value(first.find(text).tables[0][2], 5);
  }
  Process second(server, {{}});
  EXPECT_EQ(second.cached(text), 32);
  EXPECT_EQ(second.kept.cache->stats().kept, 2);
  EXPECT_EQ(second.kept.cache->stats().discarded, 4) << "the damaged block, and three that cannot be found";
  second.run(text);
  EXPECT_EQ(second.cached(text), 96);
}

TEST(KeptCache, AnotherModelOrSizeFindsNothing) {
  const SharedMemory server = SharedMemory::create_unsized().value();
  {
    Process first(server, {{}});
    first.run(text_of(1, 100));
  }
  EXPECT_TRUE(Process(server, {{}}, 2).restored.empty());
  EXPECT_TRUE(Process(server, {{}}, 1).restored.empty()) << "the other model has emptied the records";
  const BlockRecordsShape shape{kBlocks, kKeptBlockTokens, {1, 0}};
  EXPECT_EQ(KeptCache::blocks_of(server.fd(), shape), kBlocks);
  EXPECT_EQ(KeptCache::blocks_of(server.fd(), {kBlocks, kKeptBlockTokens, {2, 0}}), std::nullopt);
}

TEST(KeptCache, ResetPrefixesStayAway) {
  const SharedMemory server = SharedMemory::create_unsized().value();
  {
    Process first(server, {{}});
    first.run(text_of(1, 100));
    first.scheduler->reset_prefix_cache();
    first.run(text_of(2, 50));
  }
  Process second(server, {{}});
  EXPECT_EQ(second.cached(text_of(1, 100)), 0);
  EXPECT_EQ(second.cached(text_of(2, 50)), 48);
}

TEST(KeptCache, TheLeastRecentlyUsedPrefixIsEvictedFirst) {
  const SharedMemory server = SharedMemory::create_unsized().value();
  const std::vector<Text> texts{text_of(1, 300), text_of(2, 300), text_of(3, 300), text_of(4, 300),
                                text_of(5, 300)};
  {
    Process first(server, {{}});
    for (const Text& text : texts) first.run(text);  // each text needs 18 of the 96 blocks
    first.run(texts[0]);
  }
  {
    Process second(server, {{}});
    ASSERT_EQ(second.cached(texts[1]), 288);
    second.run(texts[1]);
  }
  Process third(server, {{}});
  third.run(text_of(6, 300));
  EXPECT_EQ(third.cached(texts[0]), 288);
  EXPECT_LT(third.cached(texts[2]), 288);
  EXPECT_EQ(third.cached(texts[1]), 288);
}

// Processes with random requests that share prefixes. Each process ends at a random step, with sequences that
// run, and with blocks that are not full.
TEST(KeptCache, AtEveryEndTheNextProcessFindsTheSamePrefixes) {
  struct Case {
    std::vector<CacheGroup> groups;
    int saved_states = 0;
  };
  for (const auto& [groups, saved_states] :
       {Case{{{}}}, Case{{{}, {.window = 40}}}, Case{{{.window = 40}, {}}}, Case{{{.window = 24}}},
        Case{{{}}, 10}, Case{{{.window = 2}}, 10}}) {
    std::mt19937 random(static_cast<unsigned>(groups.size()));
    const SharedMemory server = SharedMemory::create_unsized().value();
    std::vector<Text> texts;
    std::map<std::size_t, int> expected;  // cached tokens in the last process, by text
    for (int process = 0; process < 40; ++process) {
      Process current(server, groups, 1, saved_states);
      for (const auto& [text, tokens] : expected) ASSERT_EQ(current.cached(texts[text]), tokens) << process;
      // A block of a group with a window is discarded if the other group has evicted the block of the same
      // prefix.
      if (groups.size() == 1) {
        EXPECT_EQ(current.kept.cache->stats().discarded, 0) << process;
      }
      for (int steps = static_cast<int>(random() % 40); steps >= 0; --steps) {
        if (random() % 3 == 0) {
          Text text = texts.empty() || random() % 2 == 0 ? Text{} : texts[random() % texts.size()];
          text.resize(std::min<std::size_t>(text.size(), random() % 200));
          const Text more = text_of(static_cast<int>(texts.size()), 1 + static_cast<int>(random() % 150));
          text.insert(text.end(), more.begin(), more.end());
          const int total = static_cast<int>(text.size()) + 1 + static_cast<int>(random() % 40);
          if (current.scheduler->add({.prompt = text, .max_total_tokens = total})) texts.push_back(text);
        }
        current.step(random);
      }
      expected.clear();
      for (std::size_t i = texts.size() - std::min<std::size_t>(texts.size(), 12); i < texts.size(); ++i)
        expected[i] = current.cached(texts[i]);
    }
  }
}

}  // namespace
}  // namespace octavo
