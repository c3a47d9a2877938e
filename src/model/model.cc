#include "model/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "base/log.h"
#include "model/adapter_config.h"
#include "model/added_token.h"
#include "model/config.h"
#include "model/families/families.h"
#include "model/families/readers.h"
#include "model/generation_config.h"
#include "model/gguf_spec.h"
#include "model/image_processor.h"
#include "model/image_sizes.h"
#include "model/quantization_config.h"
#include "model/sentence_transformers.h"
#include "model/shard.h"
#include "model/sound_processor.h"
#include "model/support.h"
#include "model/weight_cache.h"
#include "model/weight_loader.h"
#include "weights/dummy.h"
#include "weights/low_rank.h"

namespace octavo {
namespace {

Result<int> checked_length(const ModelSpec& spec, std::optional<int> wanted) {
  if (!wanted) return spec.max_positions;
  if (*wanted < 1 || *wanted > spec.max_positions) {
    return invalid("max_model_len", "must be from 1 to {} tokens for this model, got {}", spec.max_positions,
                   *wanted);
  }
  return *wanted;
}

// Adds the fields that config.json lacks to an error about tensors, because a wrong default may be the
// reason.
Error with_absent_fields(Error error, const std::string& path, const boost::json::object& overrides) {
  if (is_gguf(path)) return error;
  const auto config = Config::load(path, overrides);
  std::vector<std::string_view> absent;
  for (const std::string_view field : {"hidden_size", "intermediate_size", "num_hidden_layers",
                                       "num_attention_heads", "num_key_value_heads", "vocab_size"})
    if (config && !config->has(field)) absent.push_back(field);
  if (!absent.empty())
    error.message += fmt::format(" (config.json has no value for {}, so transformers' defaults are used)",
                                 fmt::join(absent, ", "));
  return error;
}

// Loads the image or audio encoder. Its matrices are never quantised, because they are small and are used
// once per image.
Result<> load_tower(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options, Model& model,
                    WeightCache* cache) {
  auto tower = std::make_unique<Model>();
  tower->spec = *model.spec.media.tower;
  tower->max_model_len = tower->spec.max_positions;
  TRY(tower->network, checked_network(tower->spec, checkpoint));
  LoadOptions plain = options;
  plain.quantization = Encoding::plain;
  plain.progress = {};
  plain.host_weights = {};  // concern only the language model's weights
  // Options of the KV cache concern only the language model's cache, so encoders get the defaults.
  plain.block_size = LoadOptions().block_size;
  plain.cache_dtype = {};
  plain.fp8_activations = false;
  TRY_VOID(load_weights(checkpoint, backend, plain, *tower, cache));
  model.weight_bytes += tower->weight_bytes;
  model.tower = std::move(tower);
  return {};
}

Result<> load_ends(const Checkpoint& checkpoint, Backend& backend, const LoadOptions& options, Model& model,
                   WeightCache* cache) {
  auto ends = std::make_unique<Model>();
  ends->spec = model.spec;
  ends->spec.shard = {};
  ends->spec.stage = {};
  ends->max_model_len = model.max_model_len;
  TRY(Network whole, checked_network(ends->spec, checkpoint));
  ends->network.plain = whole.plain;
  ends->network.ends->embedding = std::move(whole.ends->embedding);
  if (model.spec.shard.size > 1)
    ends->network.ends->lm_head = std::move(whole.ends->lm_head);
  else
    ends->network.ends->other = model.network.ends.get();  // The last stage has the complete output matrix.
  TRY_VOID(load_weights(checkpoint, backend, options, *ends, cache));
  model.ends = std::move(ends);
  return {};
}

// Tokens of an image see each other. A sliding window limits both directions, so it must be at least as large
// as an image.
Result<> check_windows(const ModelSpec& spec) {
  const int tokens = spec.media.tower->image_tokens();
  for (const LayerSpec& layer : spec.layers)
    if (const int window = layer.attention().mask.window; window > 0 && window < tokens)
      return field_failure("sliding_window", ErrorCode::unsupported,
                           "config.json: sliding_window is {}, but with images it must be at least {}, the "
                           "tokens of one image",
                           window, tokens);
  return {};
}

std::int64_t video_pixels_max(const media::ProcessorConfig& config) {
  if (!config.video) return 0;
  return config.video->stamped ? config.video->size.pixels_max / config.video->frames : config.video->size.pixels_max;
}

// Reads how pixels are scaled, from the files beside config.json or from the mmproj file.
Result<> read_pixel_format(const std::string& path, const std::string& mmproj, ModelSpec& spec) {
  TRY(const media::ProcessorConfig config, read_image_processor(path, {}, mmproj));
  ModelSpec tower = *spec.media.tower;
  TRY_VOID(check_image_sizes(config, *tower.inputs.image, spec.media.video_token >= 0));
  if (const auto* any = std::get_if<media::AnySizeRule>(&config.rule))
    tower.max_positions = static_cast<int>(std::max(any->pixels_max / any->weight, video_pixels_max(config)) /
                                           (tower.inputs.image->patch_size * tower.inputs.image->patch_size));
  if (const auto* search = std::get_if<media::PatchSearchRule>(&config.rule))
    tower.max_positions = search->patches_max;
  if (const auto* split = std::get_if<media::SplitTileRule>(&config.rule))
    tower.max_positions = static_cast<int>(
        std::max(split->whole.pixels_max, std::int64_t{split->tiles.tile_size} * split->tiles.tile_size) /
        (split->patch_size * split->patch_size));
  if (const auto* longest = std::get_if<media::LongestEdgeRule>(&config.rule)) {
    const int side = (longest->longest + longest->unit - 1) / longest->unit * tower.inputs.image->merge;
    tower.max_positions = side * side;
  }
  if (const auto* budget = std::get_if<media::TokenBudgetRule>(&config.rule))
    tower.max_positions = budget->tokens_max * tower.inputs.image->square();
  tower.inputs.image->pixels = {config.scale, config.mean, config.std};
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return spec.media.whole_images ? check_windows(spec) : Result<>();
}

// If the files of the image processor are missing, the model supports only text.
Result<> read_images(const std::string& path, ModelSpec& spec) {
  if (!spec.media.token_text.empty()) {
    TRY(spec.media.token, id_of_added_token(path, spec.media.token_text));
  }
  const Result<> read = read_pixel_format(path, "", spec);
  if (read || read.error().code != ErrorCode::not_found) return read;
  log_warning("{}: prompts can contain only text", read.error().message);
  spec.media.tower.reset();
  spec.media.whole_images = false;
  return {};
}

// Checks that the feature extractor's output fits the encoder's input.
Result<> check_spectrogram(const std::string& path, const SoundInput& input) {
  TRY(const media::MelConfig config, read_sound_processor(path));
  if (config.mels != input.mels)
    return invalid(
        "num_mel_bins",
        "config.json: num_mel_bins is {}, but the feature extractor's feature_size is {}: both must be equal",
        input.mels, config.mels);
  if (config.frames() != input.frames())
    return invalid("max_source_positions",
                   "config.json: max_source_positions is {}, but must be half of the {} frames of {} seconds",
                   input.rows, config.frames(), config.seconds);
  return {};
}

// If the feature extractor's file is missing, the model supports only text, unless it reads audio by cross
// attention.
Result<> read_sound(const std::string& path, ModelSpec& spec) {
  const Result<> read = check_spectrogram(path, *spec.media.tower->inputs.sound);
  if (read || spec.has_audio_encoder() || read.error().code != ErrorCode::not_found) return read;
  log_warning("{}: prompts can contain only text", read.error().message);
  spec.media.tower.reset();
  return {};
}

// Values in generation_config.json take precedence over values in config.json.
Result<> read_source_begin(const std::string& path, ModelSpec& spec) {
  TRY(const GenerationConfig file, load_generation_config(path));
  ModelSpec tower = *spec.media.tower;
  std::vector<int>& begin = tower.inputs.source->begin;
  if (file.decoder_start_token_id) begin[0] = *file.decoder_start_token_id;
  if (file.forced_bos_token_id) {
    begin.resize(2);
    begin[1] = *file.forced_bos_token_id;
  }
  for (const int id : begin)
    if (id < 0 || id >= spec.vocab)
      return invalid("decoder_start_token_id",
                     "generation_config.json: token id {} must be below the size of the vocabulary, {}", id,
                     spec.vocab);
  spec.media.tower = std::make_shared<const ModelSpec>(std::move(tower));
  return {};
}

Result<> check_media_token(const ModelSpec& spec) {
  if (!spec.media.tower) return {};
  if (spec.media.video_token >= spec.vocab)
    return invalid("video_token_id", "config.json: video_token_id is {}, but the vocabulary has {} tokens",
                   spec.media.video_token, spec.vocab);
  if (spec.media.token < spec.vocab) return {};
  const std::string_view field = spec.media.tower->inputs.image ? "image_token_id" : "audio_token_index";
  return invalid(field, "config.json: {} is {}, but the vocabulary has {} tokens", field, spec.media.token,
                 spec.vocab);
}

Result<> convert(Convert to, const Config& config, ModelSpec& spec) {
  const bool scores = spec.head && !spec.head->labels.empty();
  if (to == Convert::embed && scores)
    return invalid("convert", "{} models compute scores of labels and cannot compute vectors",
                   spec.architecture);
  if (to == Convert::embed && !spec.head) spec.head = Head{.pool = Pool::last, .normalise = true};
  if (to == Convert::classify && !scores) {
    TRY(spec, as_classifier(std::move(spec), config));
  }
  return {};
}

Result<> set_pooling(const Reading& reading, ModelSpec& spec) {
  if (!reading.pool && !reading.each_token) return {};
  if (!spec.head)
    return invalid("pooler_config",
                   "{} models generate text, so they cannot be used with --runner pooling unless --convert "
                   "is embed or classify",
                   spec.architecture);
  if (reading.each_token && !spec.head->each_token && !spec.head->labels.empty())
    return invalid("pooler_config",
                   "{} models compute scores of texts, not of tokens, so pooling_type cannot be ALL",
                   spec.architecture);
  if (reading.pool) spec.head->pool = *reading.pool;
  spec.head->each_token = reading.each_token;
  return {};
}

// Makes random data for all tensors of the network and of its encoder.
Result<Checkpoint> dummy_weights(const std::string& path, const LoadOptions& options, const ModelSpec& spec) {
  if (is_gguf(path))
    return invalid("load_format", "dummy weights need a folder with a config.json, not a GGUF file");
  TRY(const Config config, Config::load(path, options.reading.overrides));
  TRY(const PackedFormat packed, packed_format(config));
  if (packed.packing != Packing::none)
    return field_failure("load_format", ErrorCode::unsupported,
                         "dummy weights are not quantised, but config.json has {}: use a config.json without "
                         "quantization_config",
                         name(packed.packing));
  ModelSpec whole = spec;  // Files contain complete tensors.
  whole.shard = {};
  whole.stage = {};
  std::vector<Slot> slots = network_of(whole).parameters().slots();
  if (spec.media.tower)
    std::ranges::copy(network_of(*spec.media.tower).parameters().slots(), std::back_inserter(slots));
  return dummy_checkpoint(slots);
}

// Adds the files of heads, which are separate from the network's files.
Result<> add_head_files(const std::string& directory, const ModelSpec& spec, Checkpoint& checkpoint) {
  for (std::size_t i = 0; i < spec.heads(); ++i)
    for (const HeadLayer& layer : spec.head_at(i).layers) {
      if (!layer.folder.empty()) TRY_VOID(checkpoint.add_folder(directory, layer.folder));
      if (!layer.file.empty())
        TRY_VOID(checkpoint.add_torch_file(std::filesystem::path(directory) / layer.file, layer.name + '.'));
    }
  return {};
}

// Reads the spec. Removes the encoder if the options exclude its media.
Result<ModelSpec> spec_to_load(const std::string& path, const LoadOptions& options) {
  TRY(ModelSpec spec, load_spec(path, options.reading));
  if (!spec.media.tower || spec.has_cross()) return spec;
  const bool sees = options.images || (options.videos && spec.media.video_token >= 0);
  if (!(spec.media.tower->inputs.image ? sees : options.sounds)) spec.media.tower.reset();
  return spec;
}

// Sets the model's spec and network. Returns the checkpoint with the required tensors.
Result<Checkpoint> describe_model(const std::string& path, const LoadOptions& options, Model& model) {
  TRY(model.spec, spec_to_load(path, options));
  model.spec.shard = options.shard;
  TRY_VOID(check_shard(model.spec));
  if (options.pipeline.stages > 1) {
    TRY(const std::vector<Stage> stages, divide_layers(model.spec, options.pipeline.stages));
    model.spec.stage = stages[static_cast<std::size_t>(options.pipeline.stage)];
  }
  TRY(model.max_model_len, checked_length(model.spec, options.max_model_len));
  TRY(Checkpoint checkpoint, options.dummy ? dummy_weights(path, options, model.spec)
                                           : open_checkpoint(path, options.reading.overrides, options.weights));
  if (!options.reading.mmproj.empty()) TRY_VOID(checkpoint.add_encoder(options.reading.mmproj));
  if (!options.dummy)
    TRY_VOID(add_head_files(options.weights.empty() ? path : options.weights, model.spec, checkpoint));
  auto network = checked_network(model.spec, checkpoint);
  if (!network)
    return std::unexpected(with_absent_fields(std::move(network.error()), path, options.reading.overrides));
  model.network = *std::move(network);
  return checkpoint;
}

// If the folder of the weights has a config.json, its architecture must be the model's.
Result<> check_architecture(const std::string& path, const std::string& weights, const Reading& reading) {
  std::error_code unknown;
  if (!is_gguf(weights) && !std::filesystem::exists(std::filesystem::path(weights) / "config.json", unknown)) return {};
  TRY(const ModelSpec spec, load_spec(path, reading));
  TRY(const ModelSpec own, load_spec(weights, reading));
  if (own.architecture != spec.architecture)
    return invalid("architectures", "{} contains the weights of a {} model, but the running model is a {}",
                   weights, own.architecture, spec.architecture);
  return {};
}

}  // namespace

Result<> check_support(const std::string& path, const LoadOptions& options, const Backend& backend) {
  TRY(const ModelSpec spec, spec_to_load(path, options));
  return check_support(
      spec, {.block_size = options.block_size, .dtype = options.cache_dtype.value_or(DType::bf16)}, backend);
}

Result<> check_weights(const std::string& path, const LoadOptions& options) {
  if (is_gguf(path) != is_gguf(options.weights))
    return invalid("", "{} is {}, as the model is {}", options.weights,
                   is_gguf(path) ? "a folder" : "a GGUF file", is_gguf(path) ? "one" : "none");
  TRY_VOID(check_architecture(path, options.weights, options.reading));
  Model model;
  TRY(const Checkpoint checkpoint, describe_model(path, options, model));
  if (model.spec.media.tower) TRY_VOID(checked_network(*model.spec.media.tower, checkpoint));
  return {};
}

namespace {

Result<ModelSpec> gguf_spec_with(const std::string& mmproj, const Gguf& gguf) {
  if (mmproj.empty()) return gguf_spec(gguf);
  TRY(const Gguf encoder, Gguf::open(mmproj));
  return gguf_spec(gguf, &encoder);
}

}  // namespace

Result<ModelSpec> load_spec(const std::string& path, const Reading& reading) {
  const Runner runner = reading.runner;
  ModelSpec spec;
  if (is_gguf(path)) {
    if (!reading.overrides.empty())
      return invalid("hf_overrides", "is not supported for a GGUF file, which has no config.json");
    if (reading.convert == Convert::classify)
      return invalid("convert", "the model of a GGUF file cannot be converted into a classifier");
    TRY(const Gguf gguf, Gguf::open(path));
    TRY(spec, gguf_spec_with(reading.mmproj, gguf));
    if (!reading.mmproj.empty()) TRY_VOID(read_pixel_format(path, reading.mmproj, spec));
  } else {
    if (!reading.mmproj.empty())
      return invalid("mmproj",
                     "{} is a folder, but --mmproj is only for GGUF files: a folder has its encoder", path);
    TRY(const Config config, Config::load(path, reading.overrides));
    TRY(spec, describe(config));
    TRY_VOID(convert(reading.convert, config, spec));
    if (spec.media.tower && spec.media.tower->inputs.image) TRY_VOID(read_images(path, spec));
    if (spec.media.tower && spec.media.tower->inputs.sound) TRY_VOID(read_sound(path, spec));
    if (spec.media.tower && spec.media.tower->inputs.source) TRY_VOID(read_source_begin(path, spec));
    TRY_VOID(check_media_token(spec));
    const bool generates = !spec.head;
    if (runner != Runner::generate || !generates) TRY_VOID(read_sentence_transformers(path, spec));
  }
  if (runner == Runner::generate && spec.head)
    return invalid("runner", "{} models compute embeddings or scores and cannot generate text",
                   spec.architecture);
  if (runner != Runner::pooling && spec.bidirectional() && !spec.head)
    return invalid("runner", "{} has bidirectional attention, so it cannot generate: set --runner pooling",
                   spec.architecture);
  // As in vLLM, the default for models without a pooling head is the last token's vector.
  if (runner == Runner::pooling && !spec.head) {
    if (reading.convert == Convert::none)
      return invalid("convert",
                     "{} models generate text: with --runner pooling, --convert must be embed or classify",
                     spec.architecture);
    spec.head = Head{.pool = Pool::last, .normalise = true};
  }
  TRY_VOID(set_pooling(reading, spec));
  return spec;
}

namespace {

// Jina v3's first checkpoints have a LoRA change of each matrix for each task. As in vLLM, the last task is
// used, which is text matching.
Result<Checkpoint> with_last_task(const Config& config, Checkpoint checkpoint) {
  TRY(const std::vector<std::string> tasks, config.texts("lora_adaptations"));
  if (tasks.empty() || !has_changes(checkpoint)) return checkpoint;
  TRY(const double alpha, config.number("lora_alpha", {0, 1e6}));
  TRY(const int rank, config.integer("lora_rank", {1, 1 << 16}));
  return with_change(checkpoint, std::ssize(tasks) - 1, static_cast<float>(alpha / rank));
}

// Jina v5 has a folder with an adapter for each task. The field jina_task selects the task, as in vLLM.
Result<Checkpoint> with_task(const Config& config, const std::string& path, Checkpoint checkpoint) {
  TRY(const std::vector<std::string> architectures, config.outer().texts("architectures"));
  if (architectures != std::vector<std::string>{"JinaEmbeddingsV5Model"}) return checkpoint;
  constexpr std::string_view kTasks[] = {"retrieval", "text-matching", "classification", "clustering"};
  TRY(const std::string task, config.text("jina_task", std::string(kTasks[0])));
  if (std::ranges::count(kTasks, task) == 0)
    return invalid("jina_task", "{} is \"{}\", but must be one of {}", config.where("jina_task"), task,
                   fmt::join(kTasks, ", "));
  const std::string folder = path + "/adapters/" + task;
  if (!std::filesystem::exists(folder)) {
    log_warning("{} is missing: the model is used without the adapter of its task", folder);
    return checkpoint;
  }
  TRY(const AdapterConfig adapter, load_adapter_config(folder));
  TRY(const Checkpoint changes, Checkpoint::open(folder + "/adapter_model.safetensors"));
  return with_adapter(checkpoint, changes, adapter.scale_of(""));
}

}  // namespace

Result<Checkpoint> open_checkpoint(const std::string& path, const boost::json::object& overrides,
                                   const std::string& weights) {
  const std::string& files = weights.empty() ? path : weights;
  if (is_gguf(path)) return Checkpoint::open(files);
  TRY(const Config config, Config::load(path, overrides));
  TRY(const PackedFormat packed, packed_format(config));
  TRY(Checkpoint checkpoint, Checkpoint::open(files, packed));
  TRY(checkpoint, with_task(config, path, std::move(checkpoint)));
  return with_last_task(config, std::move(checkpoint));
}

Result<std::string_view> quantization_method(const std::string& path) {
  if (is_gguf(path)) return "gguf";
  TRY(const Config config, Config::load(path));
  TRY(const PackedFormat packed, packed_format(config));
  return name(packed.packing);
}

Result<std::unique_ptr<Model>> Model::load(const std::string& path, Backend& backend,
                                           const LoadOptions& options) {
  auto model = std::make_unique<Model>();
  TRY(const Checkpoint checkpoint, describe_model(path, options, *model));
  std::unique_ptr<WeightCache> cache;
  if (!options.weight_cache_dir.empty())
    cache = std::make_unique<WeightCache>(path, options, checkpoint, *backend.device);
  const auto loaded = load_weights(checkpoint, backend, options, *model, cache.get());
  // Checks the files first: a damaged file can be the cause of any error in `loaded`.
  TRY_VOID(checkpoint.intact());
  TRY_VOID(loaded);
  if (model->spec.media.tower) TRY_VOID(load_tower(checkpoint, backend, options, *model, cache.get()));
  const bool has_ends = model->spec.shard.size == 1 && model->network.ends->embedding.weight;
  if (options.whole_ends && !has_ends) TRY_VOID(load_ends(checkpoint, backend, options, *model, cache.get()));
  if (cache) cache->keep(*model);
  backend.device->start_late_work();
  return model;
}

}  // namespace octavo
