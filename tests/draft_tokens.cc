#include "draft_tokens.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fstream>
#include <future>
#include <numeric>
#include <random>

#include "model/model.h"
#include "rig.h"

namespace octavo {
namespace {

constexpr int kAdapters = 3;
constexpr int kRank = 4;
constexpr const char* kDrafters = "tests/data/drafters/";

// requests in a round
constexpr int kRound = 100;
constexpr int kMaxSeqs = 24;

struct Round {
  int tokens;  // limit of a step
  int blocks;
  bool prefix_caching;
};
constexpr Round kRounds[] = {{512, 2048, true}, {512, 44, true}, {48, 2048, false}};

// The tokens are letters, digits and pairs of them; one of the last tokens is the end-of-text token.
Result<std::shared_ptr<const grammar::Vocabulary>> letters(int vocab) {
  constexpr std::string_view kSigns = "abcdefghijklmnopqrstuvwxyz0123456789 ";
  const int signs = static_cast<int>(kSigns.size());
  std::vector<std::string> tokens;
  for (int id = 0; id < vocab; ++id) {
    std::string token(1, kSigns[static_cast<std::size_t>(id % signs)]);
    for (int rest = id / signs; rest > 0; rest /= signs)
      token += kSigns[static_cast<std::size_t>(rest % signs)];
    tokens.push_back(std::move(token));
  }
  return grammar::Vocabulary::make(std::move(tokens), {}, {vocab - 5}, 1 << 20, {});
}

// Writes a random LoRA adapter for key and value projections, in PEFT's format.
void write_adapter(const std::filesystem::path& folder, const ModelSpec& spec, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  boost::json::object header;
  std::string data;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t cols, float size) {
    const std::size_t begin = data.size();
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const float number = size * normal(random);
      data.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    header[name] = {{"dtype", "F32"}, {"shape", {rows, cols}}, {"data_offsets", {begin, data.size()}}};
  };
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
    const auto* attention = std::get_if<Attention>(&spec.layers[layer].mixer);
    if (attention == nullptr) continue;
    for (const auto& [name, heads] :
         {std::pair{"k_proj", attention->kv_heads}, {"v_proj", attention->kv_heads}}) {
      const std::string module =
          fmt::format("base_model.model.model.layers.{}.self_attn.{}.lora_", layer, name);
      add(module + "A.weight", kRank, spec.dim, 1 / std::sqrt(static_cast<float>(spec.dim)));
      add(module + "B.weight", std::int64_t{heads} * attention->head_dim, kRank, 0.5F);
    }
  }
  std::string text = boost::json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "adapter_model.safetensors", std::ios::binary)
      << std::string_view(reinterpret_cast<const char*>(&length), sizeof(length)) << text << data;
  std::ofstream(folder / "adapter_config.json") << fmt::format(
      R"({{"peft_type": "LORA", "r": {}, "lora_alpha": {}, "target_modules": ["k_proj", "v_proj"]}})", kRank,
      kRank);
}

class Bench {
 public:
  Bench(const Proposing& proposing, const std::string& device, const std::filesystem::path& scratch)
      : spec_(load_spec(proposing.model).value()), scratch_(scratch) {
    options_.model.dir = proposing.model;
    options_.device.type = device;
    options_.device.threads = 1;
    options_.schedule.max_num_seqs = kMaxSeqs;
    options_.lora = {.enabled = true, .max_loras = kAdapters, .max_lora_rank = kRank, .max_cpu_loras = {}};
    for (int i = 0; i < kAdapters; ++i) write_adapter(folder(i), spec_, static_cast<std::uint32_t>(i));
  }

  std::unique_ptr<Engine> load(const Round& round, const SpeculativeOptions* speculation) const {
    EngineOptions options = options_;
    options.schedule.max_num_batched_tokens = round.tokens;
    options.cache.num_blocks = round.blocks;
    options.cache.enable_prefix_caching = round.prefix_caching;
    if (speculation != nullptr) options.speculation = *speculation;
    auto engine = load_engine(options, {.vocabulary = letters}).value();
    for (int i = 0; i < kAdapters; ++i) {
      std::promise<Result<>> done;
      engine->load_adapter({name(i), folder(i)}, [&](Result<> result) { done.set_value(std::move(result)); });
      done.get_future().get().value();
    }
    return engine;
  }

  // Some requests have a grammar, some an adapter.
  std::vector<Request> requests(Engine& engine, int count, std::uint32_t seed) const {
    constexpr const char* kRegexes[] = {"([a-f]{3,9}|x[0-9]+y){1,4}z", "[a-z ]{5,40}",
                                        "(yes|no|abc[0-9]{4,})"};
    std::vector<Request> all = random_requests(
        engine, {.vocab = spec_.vocab, .prompt_tokens = std::min(kPromptTokensMax, spec_.max_positions - 32)},
        count, seed);
    std::mt19937 random(seed);
    for (Request& request : all) {
      const unsigned kind = random() % 8;
      if (kind < 2) request.identity.adapter = name(static_cast<int>(random() % kAdapters));
      // A grammar and a list of allowed tokens together may exclude all tokens, so a request never has
      // both.
      if ((kind == 2 || kind == 0) && request.sampling.tokens.allowed_token_ids.empty()) {
        request.grammar = grammar::GrammarSource{.kind = grammar::GrammarKind::regex,
                                                 .text = kRegexes[random() % std::size(kRegexes)],
                                                 .field = "structured_outputs.regex"};
        request.sampling.stop_token_ids.clear();
        request.sampling.tokens.bad_word_ids.clear();
      }
    }
    return all;
  }

 private:
  static std::string name(int adapter) { return fmt::format("adapter{}", adapter); }
  std::filesystem::path folder(int adapter) const { return scratch_ / name(adapter); }

  ModelSpec spec_;
  std::filesystem::path scratch_;
  EngineOptions options_;
};

}  // namespace

std::vector<Proposing> all_proposing() {
  const auto data = [](const char* name) { return std::string(kDrafters) + name; };
  const auto head = [&](HeadOptions::Kind kind, const std::string& model) -> SpeculativeOptions {
    return {.method = HeadOptions{.kind = kind, .model = model}, .num_speculative_tokens = 4};
  };
  const auto position_heads = [&](PositionHeadOptions::Kind kind, const char* model) -> SpeculativeOptions {
    return {.method = PositionHeadOptions{.kind = kind, .model = data(model)}, .num_speculative_tokens = 3};
  };
  using Cached = HeadOptions::Kind;
  using HeadKind = PositionHeadOptions::Kind;
  std::vector<Proposing> all{
      {"ngram", kDemoModel, {.method = NgramOptions{1, 3}, .num_speculative_tokens = 5}},
      {"suffix", kDemoModel, {.method = SuffixOptions{}, .num_speculative_tokens = 24}},
      {"draft_model",
       kDemoModel,
       {.method = DraftModelOptions{.model = "models/demo-draft"}, .num_speculative_tokens = 4}},
      {"eagle", data("markov"), head(Cached::eagle, data("markov-eagle"))},
      {"eagle3", kDemoModel, head(Cached::eagle3, "models/demo-eagle3")},
      {"mtp", data("mimo"), head(Cached::mtp, ""), false},
      {"medusa", data("markov"), position_heads(HeadKind::medusa, "markov-medusa")},
      {"mlp_speculator", data("markov"), position_heads(HeadKind::mlp_speculator, "markov-mlp")},
      {"hybrid",  // draft tokens need recurrent states
       "tests/data/models/qwen3_next",
       {.method = SuffixOptions{}, .num_speculative_tokens = 24}}};
  for (Proposing& one : all)
    one.speculation.per_batch_size = {{1, kMaxSeqs, one.speculation.num_speculative_tokens}};
  return all;
}

DraftTokenReport check_draft_tokens(const Proposing& proposing, int requests, std::uint32_t seed,
                                    const std::string& device, const std::filesystem::path& scratch) {
  const Bench bench(proposing, device, scratch);
  const auto plain = bench.load(kRounds[0], nullptr);
  std::vector<std::unique_ptr<Engine>> engines;
  for (const Round& round : kRounds) engines.push_back(bench.load(round, &proposing.speculation));
  DraftTokenReport report;
  for (std::uint32_t round = 0; report.requests < requests; ++round) {
    const int count = static_cast<int>(std::min<std::int64_t>(kRound, requests - report.requests));
    const std::vector<Request> requested = bench.requests(*plain, count, seed + round);
    const std::vector<Answers> expected = answers_of(*plain, requested);
    const std::vector<Answers> answers = answers_of(*engines[round % engines.size()], requested);
    for (std::size_t i = 0; i < requested.size(); ++i)
      report.differences += answers[i] != expected[i] ? 1 : 0;
    report.requests += count;
  }
  for (const auto& engine : engines) {
    const EngineStats stats = engine->own_stats();
    report.draft_tokens += stats.drafts.tokens;
    report.accepted +=
        std::accumulate(stats.drafts.accepted.begin(), stats.drafts.accepted.end(), std::int64_t{0});
    report.preemptions += stats.preemptions;
  }
  return report;
}

}  // namespace octavo
