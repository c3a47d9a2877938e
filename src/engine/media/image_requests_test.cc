// Tests prompts with images: cached prefixes, adapters, tiers, and prompts that are too long.
#include "engine/testing/image_rig.h"

namespace octavo {
namespace {

using namespace image_rig;

// Requests with different images share only the blocks before the image. Requests with the same image share
// all full blocks.
TEST(ImagePrefix, IsSharedByEqualImagesAlone) {
  const Conversation conversation("idefics3");
  const auto engine = image_engine_of(conversation.golden.directory);
  ASSERT_TRUE(engine.has_value());
  const auto cached = [&](const Request& request) { return run(**engine, request).ends.at(0).cached_tokens; };
  EXPECT_EQ(cached(conversation.request()), 0);
  EXPECT_EQ(cached(conversation.request()), static_cast<int>(conversation.prompt.size() - 1) / 16 * 16);
  Request other = conversation.request();
  MediaPart& last = other.media.back();
  last.bytes[0] = static_cast<char>(last.bytes[0] ^ 1);
  last.digest.low ^= 1;
  EXPECT_EQ(cached(other), last.first / 16 * 16);
  Request text = conversation.request();
  text.media.clear();
  EXPECT_EQ(cached(text), conversation.images[0].first / 16 * 16);
}

TEST(ImageRequests, ThatDoNotFitAreRefused) {
  const Conversation conversation("idefics3");
  const auto engine = image_engine_of(conversation.golden.directory);
  ASSERT_TRUE(engine.has_value());
  const auto error = [&](auto change) {
    Request request = conversation.request();
    change(request);
    const auto id = (*engine)->submit(std::move(request), std::make_shared<Recorder>());
    return id ? std::string() : id.error().message;
  };
  EXPECT_THAT(error([](Request& r) { r.media[0].tokens = 5; }), HasSubstr("must have 4 tokens, got 5"));
  EXPECT_THAT(error([](Request& r) { r.media[0].bytes.pop_back(); }),
              HasSubstr("must have 3072 bytes of pixels"));
  EXPECT_THAT(error([](Request& r) { std::swap(r.media[0], r.media[1]); }),
              HasSubstr("must be after the previous image"));
  EXPECT_THAT(error([](Request& r) { r.media[9].first = 1000; }), HasSubstr("and within the prompt"));
  EXPECT_THAT(error([](Request& r) { r.media[0].first = -1; }),
              HasSubstr("must be after the previous image"));
}

TEST(ImageRequests, OfAnySizeThatDoNotFitAreRefused) {
  const Conversation conversation("qwen2_vl");
  const auto engine = image_engine_of(conversation.golden.directory);
  ASSERT_TRUE(engine.has_value());
  const auto error = [&](auto change) {
    Request request = conversation.request();
    change(request.media[0]);
    const auto id = (*engine)->submit(std::move(request), std::make_shared<Recorder>());
    return id ? std::string() : id.error().message;
  };
  EXPECT_THAT(error([](MediaPart& image) { image.tokens = 0; }),
              HasSubstr("must have 1 to 512 tokens, got 0"));
  EXPECT_THAT(error([](MediaPart& image) { image.columns = 0; }),
              HasSubstr("of 20 tokens cannot have 0 columns"));
  EXPECT_THAT(error([](MediaPart& image) { image.columns = 3; }),
              HasSubstr("of 20 tokens cannot have 3 columns"));
  EXPECT_THAT(error([](MediaPart& image) { image.bytes.pop_back(); }),
              HasSubstr("must have 8640 bytes of pixels"));
}

TEST(ImageRequests, OfTilesThatDoNotFitAreRefused) {
  const Conversation conversation("llava_next");
  const auto engine = image_engine_of(conversation.golden.directory);
  ASSERT_TRUE(engine.has_value());
  const auto error = [&](auto change) {
    Request request = conversation.request();
    change(request.media[0]);
    const auto id = (*engine)->submit(std::move(request), std::make_shared<Recorder>());
    return id ? std::string() : id.error().message;
  };
  EXPECT_THAT(error([](MediaPart& image) { image.tiles = {}; }),
              HasSubstr("the grid of tiles of an image is invalid"));
  EXPECT_THAT(error([](MediaPart& image) { image.tiles.left = -1; }),
              HasSubstr("the grid of tiles of an image is invalid"));
  EXPECT_THAT(error([](MediaPart& image) { image.tiles.rows += 9; }),
              HasSubstr("the grid of tiles of an image is invalid"));
  EXPECT_THAT(error([](MediaPart& image) { image.tiles.tile_columns = 1 << 30; }),
              HasSubstr("the grid of tiles of an image is invalid"));
  EXPECT_THAT(error([](MediaPart& image) { ++image.tokens; }), HasSubstr("must have 70 tokens"));
  EXPECT_THAT(error([](MediaPart& image) { image.bytes.pop_back(); }), HasSubstr("bytes of pixels"));
}

// Some tokens of an image may come from the prefix cache. All tokens of the image attend to each other, and
// have separate rows in deep layers.
class ImagePrefixIn : public testing::TestWithParam<std::string> {};

TEST_P(ImagePrefixIn, MayEndWithinAnImage) {
  const Conversation conversation(GetParam());
  const auto engine = image_engine_of(conversation.golden.directory);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  Request begin = conversation.request();
  const MediaPart& first = begin.media[0];
  ASSERT_NE(first.first / 16, (first.first + first.tokens) / 16);
  begin.prompt.resize(static_cast<std::size_t>(first.first + first.tokens));
  begin.media.resize(1);
  run(**engine, begin);
  const auto record = run(**engine, conversation.request());
  const int cached = record.ends.at(0).cached_tokens;
  EXPECT_GT(cached, first.first);
  EXPECT_LT(cached, first.first + first.tokens);
  EXPECT_EQ(record.tokens, conversation.answer);
}

// Compares with PEFT, while requests of the base model with the same images run.
TEST(ImageEngineWithAdapters, LogitsAreThoseOfPeft) {
  const Conversation conversation("qwen2_vl");
  const std::string folder = conversation.golden.directory + "/adapter";
  const auto file = MappedFile::open(folder + "/golden.safetensors").value();
  const auto tensors = parse_safetensors(file.bytes(), "golden.safetensors").value();
  const StoredTensor& logits = *std::ranges::find(tensors, "logits", &StoredTensor::name);
  std::vector<float> adapted(logits.bytes.size() / sizeof(float));
  std::ranges::copy(logits.bytes, std::as_writable_bytes(std::span(adapted)).begin());

  EngineOptions options;
  options.model.dir = conversation.golden.directory;
  options.device.type = "cpu";
  options.model.dtype = "float32";
  options.device.threads = 2;
  options.schedule.max_num_seqs = 8;
  options.logprobs.max = -1;
  options.cache.num_blocks = 256;
  options.lora = {.enabled = true, .max_loras = 1, .max_lora_rank = 8, .max_cpu_loras = {}};
  const auto engine = load_engine(options).value();
  std::promise<Result<>> done;
  engine->load_adapter({"a", folder}, [&](Result<> result) { done.set_value(std::move(result)); });
  const Result<> loaded = done.get_future().get();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const std::size_t positions = conversation.bf16_kl.size() - 1;
  for (int round = 0; round < 2; ++round) {  // the second round uses the prefix cache
    Request request = conversation.request();
    request.identity.adapter = "a";
    EXPECT_LE(difference(last_logprobs(*engine, request, positions, conversation.vocab),
                         log_softmax(adapted, conversation.vocab)),
              1e-4F);
    EXPECT_LE(
        difference(logprobs(*engine, conversation), log_softmax(conversation.logits, conversation.vocab)),
        1e-4F);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ImagePrefixIn, testing::Values("gemma3", "gemma4-whole", "qwen3_vl"),
                         image_test_name);

// The keys of blocks depend on the images, so the same text about another image is not found.
TEST(ImageModels, PromptsComeBackFromATier) {
  for (const char* name : {"gemma3", "qwen2_5_vl"}) {
    const Conversation conversation(name);
    const ScratchDirectory folder;
    ImageTestOptions options;
    options.kv_transfer = {.enabled = true,
                           .tier = KvTierOptions{.path_or_url = folder.path(), .load_always = true}};
    const auto engine = image_engine_of(conversation.golden.directory, options).value();
    std::int64_t generated = 0;
    // Returns the output and the number of loaded tokens. Afterwards, no transfer is in flight and the
    // cache is empty.
    const auto ask = [&](Request request) {
      const std::int64_t before = engine->own_stats().kv_transfer.hits;
      const std::vector<TokenId> tokens = run(*engine, std::move(request)).tokens;
      generated += std::ssize(tokens);
      const auto at_rest = [&] {
        const EngineStats stats = engine->own_stats();
        return stats.tokens.generation >= generated && stats.kv_tier.stored_blocks > 0 &&
               stats.kv_transfer.held_blocks == 0;
      };
      EXPECT_TRUE(eventually(at_rest));
      engine->reset_prefix_cache();
      return std::pair(tokens, engine->own_stats().kv_transfer.hits - before);
    };
    EXPECT_EQ(ask(conversation.request()).first, conversation.answer);
    Request other = conversation.request();
    other.media[0].bytes.assign(other.media[0].bytes.size(), 'x');
    other.media[0].digest.low ^= 1;
    EXPECT_LE(ask(std::move(other)).second, conversation.images[0].first)
        << "what comes before the picture at most";
    const auto [tokens, loaded] = ask(conversation.request());
    EXPECT_EQ(tokens, conversation.answer);
    EXPECT_EQ(loaded, (std::ssize(conversation.prompt) - 1) / 16 * 16) << name;
  }
}

TEST(ImageModels, HaveStepsThatHoldAnImage) {
  EngineOptions options;
  options.model.dir = "tests/data/vision/gemma3";
  options.device.type = "cpu";
  options.cache.num_blocks = 64;
  options.schedule.max_num_batched_tokens = 20;
  options.schedule.max_num_seqs = 8;
  EXPECT_THAT(load_engine(options).error().message,
              HasSubstr("the 16 tokens of an image and max_num_seqs = 8"));
  options.schedule.max_num_batched_tokens = 24;
  options.schedule.long_prefill_token_threshold = 15;
  EXPECT_THAT(load_engine(options).error().message, HasSubstr("an image has 16 tokens"));
}

TEST(ImageModels, WithoutImagesHaveNoEncoder) {
  EngineOptions options;
  options.model.dir = "tests/data/vision/idefics3";
  options.device.type = "cpu";
  options.media.images = 0;
  const auto engine = load_engine(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->info().image.tokens, 0);
  const auto id = (*engine)->submit(Conversation("idefics3").request(), std::make_shared<Recorder>());
  EXPECT_THAT(id.error().message, HasSubstr("is not a multimodal model"));
}

}  // namespace
}  // namespace octavo
