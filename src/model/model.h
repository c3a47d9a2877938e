// A network with its weights, ready to run on one backend. Loading uses the backend and its stream: nothing
// else may use them meanwhile.
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

// The format of weights and activations. automatic: as in the checkpoint. bfloat16 and float16 convert the
// matrices; float32 computes in single precision and leaves narrower matrices as they are, which changes no
// number. Activations are f32 where float32 is asked for, else as the backend has it for such
// matrices (Ops::activation).
enum class ModelDType : std::uint8_t { automatic, bfloat16, float16, float32 };

// Use of the model. automatic: according to its files. generate: continue texts. pooling: make one vector
// or scores of each text.
enum class Runner : std::uint8_t { automatic, generate, pooling };

// Conversion of a language model to an embedding model or classifier. automatic: according to its files;
// none: no conversion; embed: it makes a vector of each text. classify: it scores labels, by the matrix
// "score" or, if config.json has classifier_token_ids, by those rows of its output matrix.
enum class Convert : std::uint8_t { automatic, none, embed, classify };

// Options that override a model's files.
struct Reading {
  Runner runner = Runner::automatic;
  Convert convert = Convert::automatic;
  std::optional<Pool> pool = {};       // for pooling models
  bool each_token = false;             // they make a vector of each token
  boost::json::object overrides = {};  // fields of config.json
};

struct LoadOptions {
  ModelDType dtype = ModelDType::automatic;
  // int8 or int4: plain matrices are quantised while they are loaded (weights/quantize.h), embedding and
  // output matrix to int8 in both cases; where none is plain, that is an error. plain: they stay as they are.
  Encoding quantization = Encoding::plain;
  std::optional<int> max_model_len = {};  // nullopt: the model's limit
  Reading reading = {};
  bool dummy = false;                     // no files are read: the weights are made up (weights/dummy.h)
  // source of the tensors, in place of the model's files; "": the model's files
  std::string weights = {};
  int threads = 0;  // threads that read and check; 0: all that this process may use
  bool images = true, videos = true, sounds = true;  // false: the encoder for it is not loaded
  // KV cache options, which the backend must support (model/support.h). nullopt: the activations' format.
  int block_size = 16;
  std::optional<DType> cache_dtype = {};
  Shard shard = {};                       // the part of each layer to load; only for unquantised checkpoints
  bool whole_ends = false;                // Model::ends of a part
  int stage = 0;                          // index of the stage to load, of `stages`
  int stages = 1;
  // Called after each matrix.
  std::function<void(std::size_t bytes_done, std::size_t bytes_in_all)> progress = {};
};

struct Model {
  ModelSpec spec;
  int max_model_len = 0;
  DType activation = DType::f32;

  Network network;
  std::vector<Frequencies> ropes;  // beside spec.ropes
  View temperatures;               // f32 [max_model_len]: spec.temperature at each position; empty: no layer has one
  Buffer vectors;                  // holds all norms, biases and frequencies
  std::size_t weight_bytes = 0;    // bytes of all prepared matrices and vectors, the tower's included
  std::size_t checkpoint_bytes = 0;  // bytes of all tensors of the checkpoint
  std::unique_ptr<Model> tower;    // encoder of images or sound; null: the model has no encoder
  // On a rank: the whole embedding and output matrix, for draft heads; null: no draft heads.
  std::unique_ptr<Model> ends;

  // Whose embedding and output matrix are whole.
  const Ends& whole_ends() const { return ends ? *ends->network.ends : *network.ends; }

  // Reads config.json and the safetensors files of a directory, or a GGUF file. Errors:
  // - a wrong or unsupported configuration or checkpoint (the message names the field or tensor)
  // - a backend that cannot run the network, or a network that cannot be split
  // - max_model_len above the model's limit
  // - not enough memory
  static Result<std::unique_ptr<Model>> load(const std::string& path, Backend& backend,
                                             const LoadOptions& options = {});
};

// Whether the backend can run the model as `options` would load it: model/support.h. Reads no tensors.
Result<> check_support(const std::string& path, const LoadOptions& options, const Backend& backend);

// Whether other weights (options.weights) are this model's: of its architecture, and with all of its tensors. Reads no
// values. Errors: the first that is not.
Result<> check_weights(const std::string& path, const LoadOptions& options);

// Checkpoint::open, with the packed matrices that config.json speaks of. weights: see LoadOptions.
Result<Checkpoint> open_checkpoint(const std::string& path, const boost::json::object& overrides = {},
                                   const std::string& weights = {});

// Packing of the checkpoint's matrices, by its name in configurations: "gptq", "awq", "compressed-tensors",
// "fp8", "gguf"; "none": plain numbers.
Result<std::string_view> quantization_method(const std::string& path);

// The spec of a directory's config.json and the files of Sentence Transformers beside it, or of a GGUF file's
// metadata, alone. Errors: the model cannot do what is asked of it.
Result<ModelSpec> load_spec(const std::string& path, const Reading& reading = {});

}  // namespace octavo
