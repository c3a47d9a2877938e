// Whole engines of vision models, compared with transformers (tests/data/vision, made by
// tools/goldens/make_vision_goldens.py): on every backend, in chunks, alone and batched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <future>

#include "base/scratch_directory.h"
#include "base/test_eventually.h"
#include "base/test_length.h"
#include "engine/load/load.h"
#include "engine/media/image_encoder.h"
#include "engine/media/tiled_image_encoder.h"
#include "engine/testing/answers.h"
#include "engine/testing/logprobs.h"
#include "kernels/backends.h"
#include "media/padded_tiles.h"
#include "media/pinned_tiles.h"
#include "media/test_golden.h"
#include "tensor/mapped_file.h"
#include "weights/safetensors.h"

namespace octavo {
namespace {

using media::VisionGolden;
using testing::HasSubstr;

std::string pixels_of(const media::Image& tile) { return {tile.pixels.begin(), tile.pixels.end()}; }

// A golden conversation about two images.
struct Conversation {
  explicit Conversation(const std::string& name) : golden(name) {
    prompt = golden.values<TokenId>("ids");
    logits = golden.values<float>("logits");
    bf16_kl = golden.values<float>("bf16_kl");
    vocab = logits.size() / bf16_kl.size();
    answer = golden.values<TokenId>("answer");
    row_breaks = name == "mistral3" || name == "pixtral";
    any_size = name.starts_with("qwen") || name.starts_with("gemma4") || row_breaks;
    padded = name.starts_with("phi4");
    tiled = name == "llava_next" || name == "llava_onevision" || padded;
    unit = name == "pixtral" ? 6 : 12;
    int position = 0;
    for (const char* picture : {"rgb.png", "photo.jpg"}) {
      for (MediaPart& part : parts(picture)) {
        while (prompt[static_cast<std::size_t>(position)] != kImageToken) ++position;
        part.first = position;
        images.push_back(std::move(part));
        position += images.back().span();
      }
    }
  }

  // Media parts of an image, without positions.
  std::vector<MediaPart> parts(const std::string& picture) const {
    const int tokens = static_cast<int>(golden.tensor(fmt::format("rows.{}", picture)).shape[1]);
    std::vector<MediaPart> parts;
    std::string stacked;
    for (const media::Image& tile : golden.tiles(fmt::format("tiles.{}", picture))) {
      stacked += pixels_of(tile);
      if (tiled) continue;
      parts.push_back({.tokens = tokens,
                       .bytes = pixels_of(tile),
                       .columns = any_size ? tile.width / unit : 0,
                       .row_breaks = row_breaks});
    }
    if (tiled) parts.push_back({.tokens = tokens, .bytes = std::move(stacked), .tiles = tiles_of(picture)});
    for (MediaPart& part : parts)
      part.digest = hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(part.bytes)), 0);
    return parts;
  }

  MediaPart::Tiles tiles_of(const std::string& picture) const {
    if (padded) return padded_tiles_of(picture);
    const bool next = golden.directory.ends_with("llava_next");
    media::PinnedTileRule rule{.tile_size = next ? 32 : 30};
    for (int rows = 1; rows <= 3; ++rows)
      for (int columns = 1; columns <= 3; ++columns)
        if (!next || (rows * columns > 1 && rows + columns <= 4)) rule.grids.push_back({rows, columns});
    const StoredTensor& decoded = golden.tensor(fmt::format("decoded.{}", picture));
    const int width = static_cast<int>(decoded.shape[1]), height = static_cast<int>(decoded.shape[0]);
    const media::PartGrid grid = media::pinned_tile_grid(width, height, rule).value();
    const media::TokenGrid kept = media::token_grid(width, height, grid, 4, next ? 0 : 2);
    return {.tile_rows = grid.rows,
            .tile_columns = grid.columns,
            .top = kept.top,
            .left = kept.left,
            .rows = kept.rows,
            .columns = kept.columns,
            .out_rows = kept.out_rows,
            .out_columns = kept.out_columns};
  }

  MediaPart::Tiles padded_tiles_of(const std::string& picture) const {
    const media::PaddedTileRule rule{.tile_size = 48, .tiles_max = 3, .patch_size = 6};
    const StoredTensor& decoded = golden.tensor(fmt::format("decoded.{}", picture));
    const media::PartGrid grid =
        media::padded_tile_grid(static_cast<int>(decoded.shape[1]), static_cast<int>(decoded.shape[0]), rule)
            .value();
    const media::PatchGrid seen = media::seen_patches(grid, rule);
    const int rows = (seen.rows + 1) / 2, columns = (seen.columns + 1) / 2;
    return {.tile_rows = grid.rows,
            .tile_columns = grid.columns,
            .rows = rows,
            .columns = columns,
            .out_rows = rows,
            .out_columns = columns,
            .patch_rows = seen.rows,
            .patch_columns = seen.columns};
  }

  static constexpr TokenId kImageToken = 259;
  int unit;  // for models that take any image size
  // Tokens of the smallest steps. If steps cannot cut an image, this exceeds its tokens.
  int small_step() const {
    return golden.directory.ends_with("gemma3") ? 25 : golden.directory.ends_with("gemma4-whole") ? 79 : 13;
  }
  VisionGolden golden;
  std::vector<TokenId> prompt, answer;
  bool any_size, row_breaks, tiled, padded;
  std::vector<MediaPart> images;
  std::vector<float> logits, bf16_kl;  // for the last positions
  std::size_t vocab;

  Request request() const {
    Request request;
    request.prompt = prompt;
    request.media = images;
    request.sampling.max_tokens = static_cast<int>(answer.size());
    request.sampling.ignore_eos = true;
    request.sampling.temperature = 0;
    return request;
  }
};

struct ImageTestOptions {
  std::string dtype = "float32";
  int step_tokens = 2048;
  std::optional<CpuIsa> isa = {};
  std::string device = "cpu";
  bool prefix_caching = true;
  int blocks = 256;
  KvTransferOptions kv_transfer = {};
};

Result<std::unique_ptr<Engine>> image_engine_of(const std::string& directory,
                                                const ImageTestOptions& test = {}) {
  EngineOptions options;
  options.model_dir = directory;
  options.device = test.device;
  options.dtype = test.dtype;
  options.threads = 2;
  options.max_num_batched_tokens = test.step_tokens;
  options.max_num_seqs = std::min(8, test.step_tokens);
  options.max_logprobs = -1;
  options.enable_prefix_caching = test.prefix_caching;
  options.num_blocks = test.blocks;
  options.kv_transfer = test.kv_transfer;
  const auto dress = [&](Backend) { return make_cpu_backend({.threads = 2, .isa = test.isa}).value(); };
  return test.isa ? load_engine(options, {.dress = dress}) : load_engine(options);
}

std::vector<float> logprobs(Engine& engine, const Conversation& conversation) {
  return last_logprobs(engine, conversation.request(), conversation.bf16_kl.size() - 1, conversation.vocab);
}

Result<std::unique_ptr<RowEncoder>> encoder_of(const Model& tower, Backend& backend) {
  if (tower.spec.inputs.image->tiled) return TiledImageEncoder::create(tower, backend);
  return ImageEncoder::create(tower, backend);
}

// Encodes its first layer, then starts again and encodes all of it, layer by layer.
Buffer encode(RowEncoder& encoder, const MediaPart& part) {
  for (int time = 0; time < 2; ++time) {
    CHECK(encoder.begin(part).has_value());
    if (time == 0) encoder.advance(1);
  }
  std::optional<Buffer> encoded;
  while (!encoded) encoded = encoder.advance(1);
  return *std::move(encoded);
}

class ImageEngine : public testing::TestWithParam<std::string> {
 protected:
  const Conversation conversation_{GetParam()};
  const std::string& directory_ = conversation_.golden.directory;
};

TEST_P(ImageEngine, RowsAreThoseOfTransformers) {
  const auto check = [&](const std::string& name, Backend backend) {
    SCOPED_TRACE(name);
    const auto model = Model::load(directory_, backend, {.dtype = ModelDType::float32, .threads = 2});
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto encoder = encoder_of(*(*model)->tower, backend);
    ASSERT_TRUE(encoder.has_value()) << encoder.error().message;
    for (const char* picture : {"rgb.png", "palette.png"}) {
      std::vector<float> rows;
      for (const MediaPart& part : conversation_.parts(picture)) {
        const Buffer encoded = encode(**encoder, part);
        const View view = (*encoder)->rows_of(encoded);
        std::vector<float> own(static_cast<std::size_t>(view.elements()));
        backend.device->download(*backend.stream, own.data(), view);
        backend.stream->synchronize();
        rows.insert(rows.end(), own.begin(), own.end());
      }
      const float most =
          difference(rows, conversation_.golden.values<float>(fmt::format("rows.{}", picture)));
      fmt::print("max |row difference| {} {:<12} {:<12} {:.1e}\n", GetParam(), picture, name, most);
      EXPECT_LE(most, 1e-4F);
    }
  };
  std::size_t way = 0;
  check("reference", make_reference_backend());
  for (const CpuIsa isa : kCpuIsas)
    if (chosen(GetParam(), ++way, 3))
      if (auto cpu = make_cpu_backend({.threads = 2, .isa = isa}))
        check(fmt::format("cpu {}", name(isa)), *std::move(cpu));
  if (chosen(GetParam(), ++way, 3))
    if (auto cuda = make_cuda_backend()) check("cuda", *std::move(cuda));
}

// Slices of different sizes within one image, as they occur beside steps of different lengths.
TEST_P(ImageEngine, RowsDoNotDependOnSlices) {
  Backend backend = make_cpu_backend({.threads = 2, .isa = {}}).value();
  const auto model = Model::load(directory_, backend, {.dtype = ModelDType::float32, .threads = 2});
  ASSERT_TRUE(model.has_value()) << model.error().message;
  const auto encoder = encoder_of(*(*model)->tower, backend);
  ASSERT_TRUE(encoder.has_value()) << encoder.error().message;
  const auto rows_in = [&](const MediaPart& part, std::span<const int> slices) {
    CHECK((*encoder)->begin(part).has_value());
    std::optional<Buffer> encoded;
    for (std::size_t i = 0; !encoded; ++i) encoded = (*encoder)->advance(slices[i % slices.size()]);
    const View view = (*encoder)->rows_of(*encoded);
    std::vector<float> rows(static_cast<std::size_t>(view.elements()));
    backend.device->download(*backend.stream, rows.data(), view);
    backend.stream->synchronize();
    return rows;
  };
  for (const MediaPart& part : conversation_.parts("rgb.png")) {
    const std::vector<float> whole = rows_in(part, std::array{1 << 20});
    EXPECT_EQ(rows_in(part, std::array{1, 1 << 20}), whole);
    EXPECT_EQ(rows_in(part, std::array{5, 1, 9, 40, 1 << 20, 3}), whole);
  }
}

TEST_P(ImageEngine, LogitsAreThoseOfTransformersInAnyChunks) {
  const std::vector<float> expected = log_softmax(conversation_.logits, conversation_.vocab);
  std::vector<ImageTestOptions> backends{{.device = "reference"}};
  for (const CpuIsa isa : kCpuIsas)
    if (make_cpu_backend({.threads = 1, .isa = isa})) backends.push_back({.isa = isa});
  for (ImageTestOptions options : backends) {
    SCOPED_TRACE(options.isa ? name(*options.isa) : "reference");
    std::vector<float> whole;
    for (const int step_tokens : {2048, conversation_.small_step()}) {
      options.step_tokens = step_tokens;
      const auto engine = image_engine_of(directory_, options);
      ASSERT_TRUE(engine.has_value()) << engine.error().message;
      const std::vector<float> here = logprobs(**engine, conversation_);
      EXPECT_LE(difference(here, expected), 1e-4F) << step_tokens;
      if (whole.empty()) whole = here;
      EXPECT_EQ(here, whole) << step_tokens;
      EXPECT_EQ(run(**engine, conversation_.request()).tokens, conversation_.answer) << step_tokens;
    }
  }
}

TEST_P(ImageEngine, Bf16IsAsGoodAsTransformers) {
  const auto engine = image_engine_of(directory_, {.dtype = "auto"});
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  const std::vector<float> expected = log_softmax(conversation_.logits, conversation_.vocab);
  const std::vector<float> here = logprobs(**engine, conversation_);
  double ours = 0, theirs = 0;
  for (std::size_t i = 0; i < here.size(); ++i) ours += std::exp(expected[i]) * (expected[i] - here[i]);
  for (const float kl : std::span(conversation_.bf16_kl).first(conversation_.bf16_kl.size() - 1))
    theirs += kl;
  const auto positions = static_cast<double>(conversation_.bf16_kl.size() - 1);
  fmt::print("bf16 KL to f32 {} {:.1e}, transformers {:.1e}\n", GetParam(), ours / positions,
             theirs / positions);
  EXPECT_LE(ours, 1.5 * theirs);
}

// Several conversations at a time, cut by small steps, with and without the prefix cache, and with
// preemption.
TEST_P(ImageEngine, AnswersDoNotDependOnNeighbours) {
  const auto alone = image_engine_of(directory_, {.prefix_caching = false});
  ASSERT_TRUE(alone.has_value());
  Request other = conversation_.request();
  std::ranges::reverse(other.media.front().bytes);
  other.media.front().digest.low ^= 1;
  Request text = conversation_.request();
  text.media.clear();
  std::vector<Request> requests{conversation_.request(), other, text, conversation_.request()};
  for (Request& request : requests) request.sampling.max_tokens = 40;  // more blocks than two prompts leave
  const std::vector<CollectedAnswer> expected = answers_one_by_one(**alone, requests);
  const int scarce = 2 * ((static_cast<int>(conversation_.prompt.size()) + 15) / 16) + 2;
  std::vector<int> rooms{256};
  if (!GetParam().starts_with("gemma"))
    rooms.push_back(scarce);  // layers with windows need other numbers of blocks
  for (const int blocks : rooms) {
    const auto engine = image_engine_of(
        directory_, {.step_tokens = std::max(29, conversation_.small_step()), .blocks = blocks});
    expect_answers(**engine, requests, expected, blocks == scarce);
  }
}

std::string image_test_name(const testing::TestParamInfo<std::string>& param) {
  std::string name = param.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, ImageEngine,
                         testing::Values("idefics3", "smolvlm", "qwen2_vl", "qwen2_5_vl", "qwen3_vl",
                                         "qwen3_vl_moe", "qwen3_5_vl", "qwen3_5_moe_vl", "internvl", "gemma3",
                                         "gemma4", "gemma4-whole", "llava", "llava_next", "llava_onevision",
                                         "phi4_multimodal", "phi4_mm", "mistral3", "pixtral"),
                         image_test_name);

// Another image at the same position makes another prefix from its block on. The same image is found.
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
  EXPECT_THAT(error([](Request& r) { r.media[0].tokens = 5; }), HasSubstr("takes 4 tokens, got 5"));
  EXPECT_THAT(error([](Request& r) { r.media[0].bytes.pop_back(); }), HasSubstr("has 3072 bytes of pixels"));
  EXPECT_THAT(error([](Request& r) { std::swap(r.media[0], r.media[1]); }),
              HasSubstr("not behind the image before"));
  EXPECT_THAT(error([](Request& r) { r.media[9].first = 1000; }), HasSubstr("not in the prompt"));
  EXPECT_THAT(error([](Request& r) { r.media[0].first = -1; }), HasSubstr("not behind the image before"));
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
  EXPECT_THAT(error([](MediaPart& image) { image.tokens = 0; }), HasSubstr("takes 1 to 512 tokens, got 0"));
  EXPECT_THAT(error([](MediaPart& image) { image.columns = 0; }),
              HasSubstr("of 20 tokens cannot have 0 columns"));
  EXPECT_THAT(error([](MediaPart& image) { image.columns = 3; }),
              HasSubstr("of 20 tokens cannot have 3 columns"));
  EXPECT_THAT(error([](MediaPart& image) { image.bytes.pop_back(); }), HasSubstr("has 8640 bytes of pixels"));
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
  EXPECT_THAT(error([](MediaPart& image) { image.tiles = {}; }), HasSubstr("no such grid of tiles"));
  EXPECT_THAT(error([](MediaPart& image) { image.tiles.left = -1; }), HasSubstr("no such grid of tiles"));
  EXPECT_THAT(error([](MediaPart& image) { image.tiles.rows += 9; }), HasSubstr("no such grid of tiles"));
  EXPECT_THAT(error([](MediaPart& image) { image.tiles.tile_columns = 1 << 30; }),
              HasSubstr("no such grid of tiles"));
  EXPECT_THAT(error([](MediaPart& image) { ++image.tokens; }), HasSubstr("takes"));
  EXPECT_THAT(error([](MediaPart& image) { image.bytes.pop_back(); }), HasSubstr("bytes of pixels"));
}

// Some of an image's tokens may come from the prefix cache. The other tokens still see them and each other,
// and have their own rows of deep layers.
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

// Compared with PEFT, and beside the base model with the same images.
TEST(ImageEngineWithAdapters, LogitsAreThoseOfPeft) {
  const Conversation conversation("qwen2_vl");
  const std::string folder = conversation.golden.directory + "/adapter";
  const auto file = MappedFile::open(folder + "/golden.safetensors").value();
  const auto tensors = parse_safetensors(file.bytes(), "golden.safetensors").value();
  const StoredTensor& logits = *std::ranges::find(tensors, "logits", &StoredTensor::name);
  std::vector<float> adapted(logits.bytes.size() / sizeof(float));
  std::ranges::copy(logits.bytes, std::as_writable_bytes(std::span(adapted)).begin());

  EngineOptions options;
  options.model_dir = conversation.golden.directory;
  options.device = "cpu";
  options.dtype = "float32";
  options.threads = 2;
  options.max_num_seqs = 8;
  options.max_logprobs = -1;
  options.num_blocks = 256;
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

// Block names depend on the images: the same words about another image do not match.
TEST(ImageModels, PromptsComeBackFromATier) {
  for (const char* name : {"gemma3", "qwen2_5_vl"}) {
    const Conversation conversation(name);
    const ScratchDirectory folder;
    ImageTestOptions options;
    options.kv_transfer = {.enabled = true,
                           .tier = KvTierOptions{.place = folder.path(), .load_always = true}};
    const auto engine = image_engine_of(conversation.golden.directory, options).value();
    std::int64_t generated = 0;
    // Returns its answer and the number of loaded tokens. Afterwards no transfer is in flight and the cache
    // is empty.
    const auto ask = [&](Request request) {
      const std::int64_t before = engine->own_stats().kv_transfer.hits;
      const std::vector<TokenId> tokens = run(*engine, std::move(request)).tokens;
      generated += std::ssize(tokens);
      const auto at_rest = [&] {
        const EngineStats stats = engine->own_stats();
        return stats.generation_tokens >= generated && stats.kv_tier.stored_blocks > 0 &&
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
  options.model_dir = "tests/data/vision/gemma3";
  options.device = "cpu";
  options.num_blocks = 64;
  options.max_num_batched_tokens = 20;
  options.max_num_seqs = 8;
  EXPECT_THAT(load_engine(options).error().message,
              HasSubstr("the 16 tokens of an image beside max_num_seqs = 8"));
  options.max_num_batched_tokens = 24;
  options.long_prefill_token_threshold = 15;
  EXPECT_THAT(load_engine(options).error().message, HasSubstr("an image has 16 tokens"));
}

TEST(ImageModels, WithoutImagesHaveNoEncoder) {
  EngineOptions options;
  options.model_dir = "tests/data/vision/idefics3";
  options.device = "cpu";
  options.images_max = 0;
  const auto engine = load_engine(options);
  ASSERT_TRUE(engine.has_value()) << engine.error().message;
  EXPECT_EQ((*engine)->info().image.tokens, 0);
  const auto id = (*engine)->submit(Conversation("idefics3").request(), std::make_shared<Recorder>());
  EXPECT_THAT(id.error().message, HasSubstr("is not a multimodal model"));
}

}  // namespace
}  // namespace octavo
