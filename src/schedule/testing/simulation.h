// A simulation that tests the scheduler with random operations. Clients arrive and leave, and a simulated
// device stores the content of each block. After each operation, the simulation CHECKs that the invariants
// hold, that every sequence reads only its own content from the cache, and that every client is served.
// simulation_test.cc, schedule_soak.cc and schedule_fuzz.cc provide the random choices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "schedule/scheduler.h"

namespace octavo {

// Returns a number from 0 to its argument - 1.
using Choose = std::function<int(int)>;

inline Choose random_choices(std::uint64_t seed) {
  return [seed, draw = std::uint64_t{0}](int below) mutable {
    return static_cast<int>(random_bits(seed, draw++) % static_cast<std::uint64_t>(below));
  };
}

// Returns a hash with only two random bits, so that collisions are frequent.
inline Hash128 colliding_hash(HashAlgorithm algorithm, std::span<const std::byte> bytes, std::uint64_t seed) {
  return {hash_bytes(algorithm, bytes, seed).low & 3, 0};
}

inline SchedulerOptions random_options(const Choose& choose) {
  static const std::vector<std::vector<CacheGroup>> kGroups = {
      {{0}}, {{0}}, {{0}, {5}}, {{7}}, {{3}, {9}}, {{0}, {0}}, {{4}, {0}, {11}}, {{1}, {0}}};
  SchedulerOptions o;
  o.block_size = 1 + choose(6);
  o.num_blocks = 4 + choose(choose(2) == 0 ? 30 : 150);
  o.groups = kGroups[static_cast<std::size_t>(choose(static_cast<int>(kGroups.size())))];
  o.enable_prefix_caching = choose(8) != 0;
  o.prefix_hash.seed = static_cast<std::uint64_t>(choose(1000));
  // If no group has full attention, find_prefix() identifies tokens before the window only by hash. Then
  // hashes must not collide.
  const bool proven = std::ranges::any_of(o.groups, [](const CacheGroup& g) { return g.window == 0; });
  if (choose(4) == 0 && proven) o.prefix_hash.hash = &colliding_hash;
  if (choose(16) == 0) o.prefix_hash.algorithm = HashAlgorithm::sha256;
  o.max_model_len = 2 + choose(choose(3) == 0 ? 250 : 60);
  o.max_num_seqs = 1 + choose(16);
  o.max_num_batched_tokens = o.max_num_seqs + choose(40);
  o.long_prefill_token_threshold = choose(3) == 0 ? 1 + choose(12) : 0;
  o.enable_chunked_prefill = choose(5) != 0;
  if (!o.enable_chunked_prefill) {
    o.max_num_batched_tokens = std::max(o.max_num_batched_tokens, o.max_model_len);
    o.long_prefill_token_threshold = 0;
  }
  o.max_steps_in_flight = 1 + choose(3);
  o.samples_ahead = choose(3) > 0;
  o.max_draft_tokens = choose(2) == 0 ? choose(6) : 0;
  if (o.max_draft_tokens > 0) o.draft_states = choose(2) == 0 ? 1 + choose(12) : 0;
  // States are saved only if rejected draft tokens can be undone, which needs state slots for draft tokens.
  if (o.enable_prefix_caching && (o.max_draft_tokens == 0 || o.draft_states > 0))
    o.saved_states = choose(2) == 0 ? choose(12) : 0;
  // Without saved states, no prefix can be found.
  if (o.draft_states > 0 && o.saved_states == 0) o.enable_prefix_caching = false;
  o.mamba_block_size = o.block_size * (1 + choose(4));
  o.policy = static_cast<Policy>(choose(3));
  o.max_sequences = o.max_num_seqs + choose(40);
  o.watermark = choose(3) == 0 ? 0.01 * choose(50) : 0;
  o.max_preemptions = choose(5);
  return o;
}

class Simulation final : public BlockReserve {
 public:
  Simulation(SchedulerOptions options, Choose choose)
      : choose_(std::move(choose)), scheduler_(*Scheduler::create(std::move(options))) {
    const auto& o = scheduler_->options();
    arrivals_per_cent_ = 1 + choose_(40);
    device_.assign(static_cast<std::size_t>(o.num_blocks) * static_cast<std::size_t>(o.block_size), 0);
    states_.assign(static_cast<std::size_t>(o.max_num_seqs + o.draft_states + o.saved_states), 0);
    if (choose_(2) == 0) scheduler_->take_from(*this);
  }

  void operate() {
    const int what = choose_(100);
    if (what < arrivals_per_cent_ || clients_.empty()) {
      arrive();
    } else if (what < arrivals_per_cent_ + 3) {
      abort_someone();
    } else if (what < arrivals_per_cent_ + 8) {
      hold_or_let_go();
    } else if (what == 99 && choose_(10) == 0) {
      scheduler_->reset_prefix_cache();
    } else {
      step();
    }
    verify();
  }

  // Stops adding clients and runs until all clients have finished. CHECKs that no blocks are in use
  // afterwards.
  void drain() {
    while (!clients_.empty() || !flights_.empty()) {
      step();
      verify();
    }
    while (let_go()) verify();
    const SchedulerStats stats = scheduler_->stats();
    CHECK(stats.blocks_used == 0 && stats.running == 0 && stats.waiting == 0,
          "{} blocks used, {} running, {} waiting", stats.blocks_used, stats.running, stats.waiting);
  }

  bool reclaim(int blocks) override {
    const auto usable = [&] { return scheduler_->cache().pool.free() - scheduler_->lent(); };
    const int before = usable();
    while (usable() < before + blocks && (shorten() || let_go())) continue;
    return usable() > before;
  }
  int reclaimable() const override { return scheduler_->options().num_blocks; }  // an upper bound
  bool can_free(BlockId) const override { return false; }
  Scheduler& scheduler() { return *scheduler_; }
  int finished() const { return finished_; }
  int refused() const { return refused_; }
  int most_preemptions() const { return most_preemptions_; }
  std::int64_t steps() const { return steps_; }

 private:
  // A client whose complete output is known at the start. Each token is a function of all earlier tokens,
  // as with greedy sampling.
  struct Client {
    SequenceId id{};
    int prompt = 0;
    int ends_at = 0;  // final number of tokens
    std::vector<TokenId> tokens;
    // [position]: represents the keys and values of the position
    std::vector<std::uint64_t> past;
    std::int64_t work_before = 0;  // value of work_ at arrival
    std::int64_t first_step = 0;
    int max_total = 0;
    Hash128 identity;
    bool appended = false;  // whether the client received tokens that were not sampled
    std::int64_t planned_tokens = 0;
  };

  struct Row {
    std::shared_ptr<Client> client;
    int first, count;
    bool samples;
    std::vector<TokenId> drafts;
    std::vector<std::vector<BlockId>> tables;
    int state_slot, state_from, state_to;
    std::vector<int> draft_states;

    int end() const { return first + count + static_cast<int>(drafts.size()); }
  };
  struct Flight {
    StepNumber step;
    std::vector<Row> rows;
  };

  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return random_bits(a, b, 7); }

  void arrive() {
    const auto& o = scheduler_->options();
    auto client = std::make_shared<Client>();
    // Prompts belong to a few families with common prefixes of various lengths.
    const int family = choose_(4), salt = choose_(6) == 0 ? 1 : 0;
    const int vocabulary = 1 + choose_(3);
    // Most lengths fit into the pool.
    const int pool = o.num_blocks * o.block_size / static_cast<int>(o.groups.size());
    const int longest = choose_(8) == 0 ? o.max_model_len + 1 : std::max(2, std::min(o.max_model_len, pool));
    client->max_total = 2 + choose_(longest - 1);
    client->prompt = choose_(client->max_total + (choose_(8) == 0));
    const int shared = choose_(client->prompt + 1);
    for (int p = 0; p < client->prompt; ++p)
      client->tokens.push_back(p < shared ? family : 10 + choose_(vocabulary));
    client->ends_at = client->max_total;
    if (choose_(2) == 0 && client->max_total > client->prompt)
      client->ends_at = client->prompt + 1 + choose_(client->max_total - client->prompt);

    SequenceSpec spec;
    spec.prompt = client->tokens;
    spec.max_total_tokens = client->max_total;
    spec.priority = choose_(3);
    spec.identity = {static_cast<std::uint64_t>(salt), 0};
    spec.read_prefix_cache = choose_(10) != 0;
    spec.tag = arrivals_++;
    if (choose_(2) == 0 && client->prompt > 0)
      spec.checkpoint =
          (client->prompt - 1) / scheduler_->options().block_size * scheduler_->options().block_size;
    const Result<SequenceId> id = scheduler_->add(spec);
    if (!id) {
      ++refused_;
      CHECK(id.error().code == ErrorCode::resource_exhausted || refusable(*client), "refused: {}",
            id.error().message);
      return;
    }
    std::uint64_t past = static_cast<std::uint64_t>(salt) + 1;
    for (int p = 0; p < client->max_total; ++p) {
      if (p >= client->prompt) client->tokens.push_back(static_cast<TokenId>(past % 3));
      past = mix(past, static_cast<std::uint64_t>(client->tokens[static_cast<std::size_t>(p)]));
      client->past.push_back(past);
    }
    client->id = *id;
    client->identity = spec.identity;
    client->first_step = steps_;
    client->work_before = work_;
    for (const auto& [tag, other] : clients_) client->work_before -= most_work(*other);
    work_ += most_work(*client);
    clients_[spec.tag] = client;
  }

  bool refusable(const Client& c) const {
    const auto& o = scheduler_->options();
    return c.prompt == 0 || c.prompt >= o.max_model_len || c.max_total <= c.prompt ||
           c.max_total > o.max_model_len ||
           o.num_blocks < static_cast<int>(o.groups.size()) * ((c.max_total - 2) / o.block_size + 1);
  }

  // Returns the maximum number of tokens that may be computed for a client, given the limit on preemptions.
  std::int64_t most_work(const Client& c) const {
    return std::int64_t{1 + scheduler_->options().max_preemptions} * c.max_total;
  }

  void abort_someone() {
    if (clients_.empty()) return;
    const auto it = std::next(clients_.begin(), choose_(static_cast<int>(clients_.size())));
    end(*it->second);
    clients_.erase(it);
  }

  // Holds the first blocks of a client's prompt: either only the cached blocks, or all blocks. In the
  // second case, the missing blocks are loaded as if from another engine.
  void hold_or_let_go() {
    const auto& o = scheduler_->options();
    if (choose_(2) == 0 && let_go()) return;
    if (!o.enable_prefix_caching || clients_.empty()) return;
    const Client& client = *std::next(clients_.begin(), choose_(static_cast<int>(clients_.size())))->second;
    const int blocks = choose_(2) == 0 ? choose_((client.prompt - 1) / o.block_size + 1) : 0;
    PrefixHold* hold = scheduler_->hold(
        std::span(client.tokens).first(static_cast<std::size_t>(client.prompt)), client.identity, blocks);
    if (hold == nullptr) return;
    const int held = static_cast<int>(hold->keys.size());
    for (std::size_t g = 0; g < o.groups.size(); ++g)
      for (int p = 0; p < held * o.block_size; ++p) {
        const BlockId block =
            hold->blocks.table(static_cast<int>(g))[static_cast<std::size_t>(p / o.block_size)];
        const int first = scheduler_->cache().first_needed(static_cast<int>(g), held * o.block_size);
        CHECK((block == kNoBlock) == (p / o.block_size < first), "block {} of {} is not held",
              p / o.block_size, held);
        if (block == kNoBlock) continue;
        std::uint64_t& cell = device_[static_cast<std::size_t>(block * o.block_size + p % o.block_size)];
        const std::uint64_t content = mix(client.past[static_cast<std::size_t>(p)], g);
        CHECK(p >= hold->cached * o.block_size || cell == content, "foreign content in a block that is held");
        cell = content;
      }
    if (hold->state_slot != kNoState) {
      const std::uint64_t past = client.past[static_cast<std::size_t>(held * o.block_size) - 1];
      CHECK(!hold->is_whole() || state(hold->state_slot) == past, "a foreign state that is held");
      state(hold->state_slot) = past;
    }
    scheduler_->publish(*hold, hold->cached + choose_(held - hold->cached + 1));
    holds_.push_back(hold);
    for (int forks = choose_(4); forks > 0 && hold->is_whole(); --forks)
      holds_.push_back(scheduler_->share(*hold));
  }

  bool shorten() {
    if (holds_.empty() || !scheduler_->can_shorten()) return false;
    PrefixHold& hold = *holds_.back();
    if (!hold.is_whole() || hold.cached == 0) return false;
    scheduler_->shorten(hold, hold.cached - 1);
    return true;
  }
  bool let_go() {
    if (holds_.empty()) return false;
    const auto hold = holds_.begin() + choose_(static_cast<int>(holds_.size()));
    scheduler_->let_go(*hold);
    holds_.erase(hold);
    return true;
  }

  void end(const Client& client) {
    CHECK(scheduler_->finish(client.id));
    CHECK(!scheduler_->finish(client.id) && !scheduler_->commit(client.id, 0));
  }

  void step() {
    const bool full = static_cast<int>(flights_.size()) == scheduler_->options().max_steps_in_flight;
    if (full || (!flights_.empty() && choose_(4) == 0)) {
      land();
    } else if (!launch()) {
      if (!flights_.empty()) return land();
      CHECK(clients_.empty() || let_go(), "nothing planned for {} clients", clients_.size());
    }
  }

  bool launch() {
    scheduler_->plan(plan_);
    for (const SequenceId id : plan_.preempted) {
      const int preemptions = scheduler_->find(id)->counts.preemptions;
      most_preemptions_ = std::max(most_preemptions_, preemptions);
      CHECK(preemptions <= scheduler_->options().max_preemptions);
    }
    CHECK(plan_.empty() == (plan_.step == 0));
    if (plan_.empty()) return false;
    ++steps_;
    Flight flight{plan_.step, {}};
    int tokens = 0;
    for (const PlannedSequence& p : plan_.sequences) {
      tokens += p.end() - p.first;
      flight.rows.push_back(row_of(p));
    }
    CHECK(tokens == plan_.tokens && tokens <= scheduler_->options().max_num_batched_tokens);
    CHECK(static_cast<int>(flight.rows.size()) <= scheduler_->options().max_num_seqs);
    flights_.push_back(std::move(flight));
    return true;
  }

  Row row_of(const PlannedSequence& p) {
    const auto it = clients_.find(p.tag);
    CHECK(it != clients_.end(), "client {} was planned after its end", p.tag);
    Client& client = *it->second;
    client.planned_tokens += p.count;
    CHECK(p.count > 0 && p.end() < client.max_total);
    CHECK(p.drafts.empty() || p.samples);
    CHECK(static_cast<int>(p.tokens.size()) + p.last_pending == p.count);
    CHECK(p.samples || scheduler_->options().enable_chunked_prefill || client.appended);
    for (std::size_t i = 0; i < p.tokens.size(); ++i)
      CHECK(p.tokens[i] == client.tokens[static_cast<std::size_t>(p.first) + i]);
    Row row{
        it->second, p.first,      p.count,      p.samples,  {p.drafts.begin(), p.drafts.end()},
        {},         p.state_slot, p.state_from, p.state_to, {p.draft_states.begin(), p.draft_states.end()}};
    const KvCache& cache = scheduler_->cache();
    for (int g = 0; g < cache.group_count(); ++g) {
      const auto table = p.blocks->table(g);
      row.tables.emplace_back(table.begin(), table.end());
      for (int position = p.first; position < p.end(); ++position) {
        const BlockId block = table[static_cast<std::size_t>(position / cache.pool.block_size())];
        CHECK(cache.pool.references(block) == 1 && cache.pool.prefix(block) == kEmptyPrefix,
              "block {} is written by one and used by {}", block, cache.pool.references(block));
        CHECK(!touched_in_flight(block, g, client), "block {} is written while a step in flight may read it",
              block);
      }
    }
    return row;
  }

  bool touched_in_flight(BlockId block, int group, const Client& client) const {
    const KvCache& cache = scheduler_->cache();
    for (const Flight& flight : flights_)
      for (const Row& row : flight.rows) {
        const std::ptrdiff_t seen = cache.first_needed(group, row.first);
        const auto& table = row.tables[static_cast<std::size_t>(group)];
        if (row.client.get() != &client && std::find(table.begin() + seen, table.end(), block) != table.end())
          return true;
      }
    return false;
  }

  std::uint64_t& cell(const Row& row, std::size_t group, int position) {
    const int size = scheduler_->options().block_size;
    const BlockId block = row.tables[group][static_cast<std::size_t>(position / size)];
    CHECK(block != kNoBlock, "position {} is out of the window", position);
    return device_[static_cast<std::size_t>(block * size + position % size)];
  }

  static int true_drafts(const Row& row) {
    const auto known = row.client->tokens.begin() + row.first + row.count;
    return static_cast<int>(
        std::ranges::mismatch(row.drafts, std::ranges::subrange(known, row.client->tokens.end())).in1 -
        row.drafts.begin());
  }

  // Returns the content that the group's layers compute for a position. The content differs after a wrong
  // draft token.
  static std::uint64_t content(const Row& row, std::size_t group, int position) {
    const bool rejected = position >= row.first + row.count + true_drafts(row);
    return mix(row.client->past[static_cast<std::size_t>(position)], rejected ? ~group : group);
  }

  // Runs the oldest step in flight, as late as allowed, also for clients that have left. All writes come
  // before all reads.
  void land() {
    const Flight flight = std::move(flights_.front());
    flights_.pop_front();
    const auto& groups = scheduler_->options().groups;
    for (const Row& row : flight.rows)
      for (std::size_t g = 0; g < groups.size(); ++g)
        for (int p = row.first; p < row.end(); ++p) cell(row, g, p) = content(row, g, p);
    for (const Row& row : flight.rows)
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const int seen = groups[g].window == 0 ? 0 : std::max(0, row.first - groups[g].window + 1);
        for (int p = seen; p < row.end(); ++p)
          CHECK(cell(row, g, p) == content(row, g, p), "foreign content at position {} of {}", p, row.first);
      }
    if (scheduler_->options().saved_states > 0 || scheduler_->options().draft_states > 0) pass_states(flight);
    scheduler_->collect(flight.step);
    for (const Row& row : flight.rows)
      if (row.samples) commit(row);
  }

  // Moves recurrent states. First all states are restored, then all sequences run, then all states are
  // saved.
  void pass_states(const Flight& flight) {
    for (const Row& row : flight.rows)
      if (row.state_from != kNoState) state(row.state_slot) = state(row.state_from);
    for (const Row& row : flight.rows) {
      CHECK(row.first == 0 ||
                state(row.state_slot) == row.client->past[static_cast<std::size_t>(row.first) - 1],
            "a foreign state at position {}", row.first);
      CHECK(row.draft_states.size() == row.drafts.size());
      const int known = row.first + row.count;
      for (std::size_t i = 0; i < row.drafts.size(); ++i)
        state(row.draft_states[i]) = past(row, known + static_cast<int>(i) - 1);
      state(row.state_slot) = past(row, row.end() - 1);
    }
    for (const Row& row : flight.rows)
      if (row.state_to != kNoState)
        state(row.state_to) = state(row.drafts.empty() ? row.state_slot : row.draft_states[0]);
  }
  // Returns a number that represents all tokens up to a position. The number differs after a wrong draft
  // token.
  static std::uint64_t past(const Row& row, int position) {
    const std::uint64_t right = row.client->past[static_cast<std::size_t>(position)];
    return position < row.first + row.count + true_drafts(row) ? right : ~right;
  }
  std::uint64_t& state(int slot) { return states_[static_cast<std::size_t>(slot)]; }

  void commit(const Row& row) {
    Client& client = *row.client;
    const Sequence* s = scheduler_->find(client.id);
    if (s == nullptr) return;
    CHECK(scheduler_->commit(client.id, client.tokens[s->tokens.size()]));
    for (int i = true_drafts(row); i > 0 && static_cast<int>(s->tokens.size()) < client.ends_at; --i)
      scheduler_->commit_draft(client.id, client.tokens[s->tokens.size()]);
    if (s->sampling == 0 && choose_(8) == 0) append(client, *s, choose_(choose_(4) == 0 ? 60 : 6));
    if (static_cast<int>(s->tokens.size()) < client.ends_at) {
      if (s->sampling == 0) add_drafts(client, *s);
      return;
    }
    // Each step computed a token for some client, and no client exceeded most_work().
    CHECK(client.planned_tokens <= most_work(client));
    CHECK(steps_ - client.first_step <= work_ - client.work_before, "{} steps for {} tokens of work",
          steps_ - client.first_step, work_ - client.work_before);
    const std::uint64_t tag = s->spec.tag;
    end(client);
    clients_.erase(tag);
    ++finished_;
  }

  void append(Client& client, const Sequence& s, int count) {
    for (; count > 0 && static_cast<int>(s.tokens.size()) < client.ends_at; --count) {
      scheduler_->append(client.id, client.tokens[s.tokens.size()]);
      client.appended = true;
    }
  }

  // Adds draft tokens, most of which are correct.
  void add_drafts(const Client& client, const Sequence& s) {
    std::vector<TokenId> drafts(
        static_cast<std::size_t>(choose_(scheduler_->options().max_draft_tokens + 1)));
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      const std::size_t token_index = s.tokens.size() + i;
      const bool right = choose_(4) != 0 && token_index < client.tokens.size();
      drafts[i] = right ? client.tokens[token_index] : -1;
    }
    scheduler_->draft(client.id, drafts);
  }

  void verify() {
    scheduler_->check();
    const SchedulerStats s = scheduler_->stats();
    CHECK(s.blocks_free + s.blocks_cached + s.blocks_used == s.blocks_total);
    CHECK(s.blocks_free >= 0 && s.blocks_cached >= 0 && s.blocks_used >= 0);
    CHECK(s.running + s.waiting == static_cast<int>(clients_.size()));
    if (clients_.empty() && flights_.empty() && holds_.empty())
      CHECK(s.blocks_used == 0, "idle, and {} blocks are used", s.blocks_used);
  }

  Choose choose_;
  int arrivals_per_cent_;
  std::unique_ptr<Scheduler> scheduler_;
  StepPlan plan_;
  std::vector<std::uint64_t> device_;                         // [block, offset]
  std::vector<std::uint64_t> states_;                         // [slot]
  std::map<std::uint64_t, std::shared_ptr<Client>> clients_;  // by SequenceSpec::tag
  std::deque<Flight> flights_;
  std::vector<PrefixHold*> holds_;
  std::int64_t steps_ = 0;
  std::int64_t work_ = 0;  // sum of most_work() over all clients so far
  std::uint64_t arrivals_ = 0;
  int finished_ = 0;
  int refused_ = 0;
  int most_preemptions_ = 0;
};

}  // namespace octavo
