// A network with its weights, ready to run on one backend. While a model is loaded, only the loader may use
// the backend and its stream.
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
#include "model/network.h"
#include "model/spec.h"
#include "tensor/buffer.h"
#include "weights/checkpoint.h"

namespace octavo {

// Format of weights and activations. automatic: the checkpoint's format. bfloat16 and float16 convert the
// matrices. float32 computes in single precision; matrices in narrower formats keep them, which is exact.
// Activations are f32 for float32; otherwise the backend selects their format from that of the matrices
// (Ops::activation).
enum class ModelDType : std::uint8_t { automatic, bfloat16, float16, float32 };

// Task of the model. automatic: depends on the model's files. generate: generates text. pooling: computes a
// vector or scores for each text.
enum class Runner : std::uint8_t { automatic, generate, pooling };

// Conversion of a language model to an embedding model or a classifier. Automatic: depends on the model's
// files. Embed: computes a vector for each text. Classify: computes scores of labels, with the matrix "score"
// or, if config.json has classifier_token_ids, with these rows of the output matrix.
enum class Convert : std::uint8_t { automatic, none, embed, classify };

// Options that override a model's files.
struct Reading {
  Runner runner = Runner::automatic;
  Convert convert = Convert::automatic;
  std::optional<Pool> pool = {};       // for pooling models: type of pooling
  bool each_token = false;             // for pooling models: whether each token has a vector
  boost::json::object overrides = {};  // fields that replace fields of config.json
};

struct LoadOptions {
  ModelDType dtype = ModelDType::automatic;
  // int8 or int4: plain matrices are quantised while they are loaded (weights/quantize.h); embedding and
  // output matrix always become int8. It is an error if no matrix is plain. plain: matrices are not
  // quantised.
  Encoding quantization = Encoding::plain;
  std::optional<int> max_model_len = {};  // maximum number of tokens of a sequence; nullopt: the model's
                                          // limit
  Reading reading = {};
  bool dummy = false;  // true: no files are read, and weights are random numbers (weights/dummy.h)
  // Directory or GGUF file with the tensors; "": the model's files.
  std::string weights = {};
  int threads = 0;  // number of threads that read and check tensors; 0: one per CPU of the process
  bool images = true, videos = true, sounds = true;  // false: the encoder for this type of input is not
                                                     // loaded
  // Options of the KV cache, which the backend must support (model/support.h). Format nullopt: that of the
  // activations.
  int block_size = 16;
  std::optional<DType> cache_dtype = {};
  Shard shard = {};         // part of each layer to load; requires an unquantised checkpoint
  bool whole_ends = false;  // whether a rank also loads Model::ends
  int stage = 0;            // index of the pipeline stage to load; `stages` is their number
  int stages = 1;
  // Called after each matrix with the number of loaded bytes and the total.
  std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)> progress = {};
};

struct Model {
  ModelSpec spec;
  int max_model_len = 0;
  DType activation = DType::f32;

  Network network;
  std::vector<Frequencies> ropes;  // angles of the pairs, parallel to spec.ropes
  View temperatures;               // f32 [max_model_len]: spec.temperature at each position; empty if unused
  Buffer vectors;                    // memory of all norms, biases and frequencies
  std::size_t weight_bytes = 0;      // bytes of all prepared matrices and vectors, including the tower's
  std::size_t checkpoint_bytes = 0;  // bytes of all tensors of the checkpoint
  std::unique_ptr<Model> tower;      // encoder of images or sound; null if the model has none
  // On a rank with draft heads: the complete embedding and output matrix for these heads.
  std::unique_ptr<Model> ends;

  // Returns embedding and output matrix of the complete vocabulary.
  const Ends& whole_ends() const { return ends ? *ends->network.ends : *network.ends; }

  // Reads config.json and the safetensors files of a directory, or a GGUF file. Returns an error in these
  // cases.
  // - The configuration or the checkpoint is wrong or not supported; the message names the field or tensor.
  // - The backend cannot run the network, or the network cannot be split.
  // - max_model_len is above the model's limit.
  // - Memory does not suffice.
  static Result<std::unique_ptr<Model>> load(const std::string& path, Backend& backend,
                                             const LoadOptions& options = {});
};

// Checks whether the backend can run the model with `options` (model/support.h). It reads no tensors.
Result<> check_support(const std::string& path, const LoadOptions& options, const Backend& backend);

// Checks whether the weights options.weights fit this model: the architecture must be the same, and all
// tensors must exist. It reads no values. The error names the first difference.
Result<> check_weights(const std::string& path, const LoadOptions& options);

// Opens a checkpoint (Checkpoint::open) with the packed matrices that config.json describes. weights: see
// LoadOptions.
Result<Checkpoint> open_checkpoint(const std::string& path, const boost::json::object& overrides = {},
                                   const std::string& weights = {});

// Returns how the checkpoint's matrices are packed, by the name in config.json: "gptq", "awq",
// "compressed-tensors", "fp8"; or "gguf"; "none": plain numbers.
Result<std::string_view> quantization_method(const std::string& path);

// Reads the spec from a directory's config.json and its files of Sentence Transformers, or from a GGUF file's
// metadata. Returns an error if the model does not support `reading`.
Result<ModelSpec> load_spec(const std::string& path, const Reading& reading = {});

}  // namespace octavo
