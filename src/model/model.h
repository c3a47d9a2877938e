// A network with its weights, ready to run on one backend. While Model::load() runs, no other thread may use
// the backend or its stream.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/host_weights.h"
#include "model/network.h"
#include "model/spec.h"
#include "tensor/buffer.h"
#include "weights/checkpoint.h"
#include "weights/converted_weights.h"

namespace octavo {

// Format of weights and activations (--dtype). `automatic` keeps the checkpoint's format. bfloat16 and
// float16 convert the matrices. float32 computes in single precision, but matrices in narrower formats keep
// their format, because this is exact. Activations are f32 for float32; otherwise the backend selects their
// format from the matrices' format (Ops::activation).
enum class ModelDType : std::uint8_t { automatic, bfloat16, float16, float32 };

// Task of the model (--runner). `generate` generates text. `pooling` computes a vector or scores for each
// text. `automatic` depends on the model's files.
enum class Runner : std::uint8_t { automatic, generate, pooling };

// Conversion of a language model to an embedding model or a classifier (--convert). `embed` computes a vector
// for each text. `classify` computes scores of labels, with the matrix "score" or, if config.json has
// classifier_token_ids, with these rows of the output matrix. `automatic` depends on the model's files.
enum class Convert : std::uint8_t { automatic, none, embed, classify };

// Options that override a model's files.
struct Reading {
  Runner runner = Runner::automatic;
  Convert convert = Convert::automatic;
  std::optional<Pool> pool = {};       // type of pooling, only for pooling models
  bool each_token = false;             // true: one vector per token; only for pooling models
  boost::json::object overrides = {};  // replace fields of config.json
  std::string mmproj = {};  // file with the image encoder of a GGUF model; empty: the model reads only text
};

// Pipeline stage to load: its index, in [0, stages), and the number of stages.
struct PipelineStage {
  int stage = 0;
  int stages = 1;
};

struct LoadOptions {
  ModelDType dtype = ModelDType::automatic;
  // int8 or int4 quantise plain matrices while they are loaded (weights/quantize.h); embedding and output
  // matrix always become int8. Loading fails if no matrix is plain.
  Encoding quantization = Encoding::plain;
  std::optional<int> max_model_len = {};  // tokens; nullopt: the model's limit
  Reading reading = {};
  // Products with fp8 matrices round activations to fp8, as the checkpoint's quantization_config says.
  // Matrices whose scales change within kFp8Columns columns are excluded.
  bool fp8_activations = false;
  bool dummy = false;  // weights are random numbers, and no weight files are read (weights/dummy.h)
  // Directory or GGUF file with the tensors. If empty, the model's files are used.
  std::string weights = {};
  int threads = 0;  // threads that read and check tensors; 0: one per CPU of the process
  bool images = true, videos = true, sounds = true;  // false: do not load the encoder for this type of input
  // Options of the KV cache. The backend must support them (model/support.h). If cache_dtype is nullopt, the
  // cache has the format of activations.
  int block_size = 16;
  std::optional<DType> cache_dtype = {};
  HostWeights host_weights = {};  // only for devices with separate memory
  Shard shard = {};               // tensor and expert parallelism: the part of the model to load
  bool whole_ends = false;  // load Model::ends
  PipelineStage pipeline = {};
  // Lets the backend convert matrices in GGUF blocks after load(), while the model is in use. If a file is
  // shortened in the meantime, the process ends.
  bool late = false;
  // Only for the CPU backend: folder for files with converted matrices (weight_cache.h). If empty, all
  // matrices are converted.
  std::string weight_cache_dir = {};
  // Called after each matrix with the number of loaded bytes and the total.
  std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)> progress = {};
};

struct Model {
  // The file of the weight cache that has the matrices; null: none. Destroyed after the matrices.
  std::unique_ptr<ConvertedWeights> converted;
  ModelSpec spec;
  int max_model_len = 0;
  DType activation = DType::f32;

  Network network;
  std::vector<Frequencies> ropes;  // RoPE frequencies, parallel to spec.ropes
  // f32 [max_model_len]: factor of queries at each position (spec.temperature); empty if unused
  View temperatures;
  Buffer vectors;                    // memory of all norms, biases and frequencies
  std::size_t weight_bytes = 0;      // size of prepared matrices and vectors, including the encoder
  std::size_t host_weight_bytes = 0;  // part of weight_bytes that is in host memory (HostWeights)
  HostLayers host_layers;             // layers with weights in host memory
  std::size_t checkpoint_bytes = 0;   // all tensors of the checkpoint
  std::unique_ptr<Model> tower;      // image or audio encoder of the model; null: the model has none
  // Complete embedding and output matrix for draft heads, on a rank that has only a part of them.
  std::unique_ptr<Model> ends;
  // Writes the matrices to the weight cache; null if it has them. Destroyed before the matrices.
  std::unique_ptr<ConvertedWeightsWriter> converted_writer;

  // Returns the embedding and the output matrix of the complete vocabulary.
  const Ends& whole_ends() const { return ends ? *ends->network.ends : *network.ends; }

  // Loads a directory (config.json and weight files) or a GGUF file. Returns an error if the configuration or
  // the checkpoint is wrong or not supported; the message names the field or tensor. Also returns an error if
  // the backend cannot run the network, if the network cannot be split over the ranks, if max_model_len is
  // above the model's limit, or if memory does not suffice.
  static Result<std::unique_ptr<Model>> load(const std::string& path, Backend& backend,
                                             const LoadOptions& options = {});
};

// Checks whether the backend can run the model with `options` (model/support.h). Reads no tensors.
Result<> check_support(const std::string& path, const LoadOptions& options, const Backend& backend);

// Checks whether options.weights fit this model: the architecture must be the same, and all tensors must
// exist. Reads no values. The error names the first difference.
Result<> check_weights(const std::string& path, const LoadOptions& options);

// Opens a checkpoint (Checkpoint::open) with the packed matrices that config.json describes. `weights` is
// LoadOptions::weights.
Result<Checkpoint> open_checkpoint(const std::string& path, const boost::json::object& overrides = {},
                                   const std::string& weights = {});

// Returns how the checkpoint's matrices are packed: the name in config.json (such as "gptq" or "fp8"),
// "gguf", or "none" for plain matrices.
Result<std::string_view> quantization_method(const std::string& path);

// Reads the spec from a directory's config.json and its files of Sentence Transformers, or from the metadata
// of a GGUF file. Returns an error if the model does not support `reading`.
Result<ModelSpec> load_spec(const std::string& path, const Reading& reading = {});

}  // namespace octavo
