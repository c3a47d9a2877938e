// Interface that runs the steps of one engine, on one device or on several ranks. The engine loop calls it:
//
//   forward(batch)   enqueue the forward pass
//   sample(rows)     enqueue the sampling of tokens from the logits
//   collect()        wait for the oldest sampled step and return the tokens
//   pool()           pooling models: replaces sample() and collect(), and returns vectors
//
// forward() and sample() are separate, so that the host can commit the previous step and fill grammar masks
// while the device computes the forward pass. A host backend computes during the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "dist/arrival_watch.h"
#include "engine/execute/batch.h"
#include "model/adapter.h"
#include "sample/sampler.h"
#include "tensor/buffer.h"
#include "transfer/block_format.h"
#include "transfer/native_blocks.h"

namespace octavo {

// Returns the maximum number of encoded media tokens in memory. It suffices for the longest prompt, or for
// several short ones.
inline std::int64_t image_tokens_max(int max_model_len) { return std::max(max_model_len, 8192); }

// The LoRA adapters in memory. Each adapter has a slot, and Batch::adapters contains slots.
class AdapterSlots {
 public:
  // Reads an adapter from a folder. Thread-safe. Returns the errors of AdapterReader.
  virtual Result<AdapterFile> read_adapter(const std::string& directory) const = 0;
  // Adds these matrices to the adapter in the slot. Returns an error if there is not enough memory.
  virtual Result<> put_adapter(int slot, std::span<const AdapterFile::Change> changes) = 0;
  virtual void drop_adapter(int slot) = 0;

 protected:
  ~AdapterSlots() = default;
};

// Encodes images, sounds, and prompts for cross attention. A result stays in its slot (Batch::images,
// Batch::sources) until the slot is reused.
class MediaEncoder {
 public:
  // Starts to encode a part, and cancels an unfinished part. Returns an error if there is not enough
  // memory.
  virtual Result<> begin_media(int slot, const MediaPart& part) = 0;
  // Encodes about `rows` more rows through all layers, so that steps can run between the calls. Returns
  // true when the part is complete. The result does not depend on `rows`.
  virtual bool advance_media(int rows) = 0;
  virtual void drop_media(int slot) = 0;

 protected:
  ~MediaEncoder() = default;
};

class BlockExchange {
 public:
  // Returns the format of exported blocks, or unsupported with the reason if this engine cannot export
  // blocks.
  virtual Result<BlockFormat> block_format() const = 0;
  // Copies a piece (format.bytes bytes) out of the cache. Thread-safe. During the copy, steps must not write
  // a block or state that is exported, and must not use one that is imported.
  virtual void export_piece(KvLocation location, std::span<std::byte> out) const = 0;
  virtual void import_piece(KvLocation location, std::span<const std::byte> bytes) = 0;
  // Allocates host memory for copies of pieces; pinned if the device is a GPU. Returns an error if there is
  // not enough memory.
  virtual Result<Buffer> allocate_staging(std::size_t bytes) { return allocate_host(bytes); }
  virtual bool in_host_memory() const { return true; }
  // Returns the blocks in the native layout of the backend, for engines with the same layout.
  virtual NativeBlocks native_blocks() { return {}; }

 protected:
  ~BlockExchange() = default;
};

// Runs steps at the same time as other engines that share experts (model/blocks/expert_exchange.h). While
// one engine computes a step, every other engine must compute a step, too, or assist.
class LockStep {
 public:
  virtual std::vector<int> engine_sockets() const = 0;
  // Returns true if another engine has started a step and this engine has not. If it returns false, `watch`
  // reports when another engine starts a step, unless the engines have ended their exchange
  // (ExpertExchange::leave).
  virtual bool is_called(ArrivalWatch& watch) = 0;
  // Computes this engine's experts for that step. Returns the errors of Executor::forward().
  virtual Result<> assist() = 0;

 protected:
  ~LockStep() = default;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // Returns true if the next forward() may be enqueued before the last step is collected. Batch::pending
  // then contains the tokens that the last step is still sampling.
  virtual bool asynchronous() const = 0;
  // Returns the number of pipeline stages, which is also the number of forward passes that may be enqueued
  // before the first one is sampled and collected. If it is above 1, asynchronous() is false.
  virtual int stages() const { return 1; }
  int steps_in_flight() const { return asynchronous() ? 2 : stages(); }

  // forward(), sample() and collect() return an error if the device failed permanently.
  virtual Result<> forward(const Batch& batch) = 0;

  // Samples one token for each row. Row i uses the logits of token tokens[i] of the batch. The pointers in
  // `rows` are read only during the call. `rows` may be empty.
  virtual Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) = 0;

  // Waits for the oldest sampled step. Returns one token for each row, valid until the next sample().
  virtual Result<std::span<SampledToken>> collect() = 0;

  // Returns true for a model with a pooling head. forward() then gets complete prompts, and pool() replaces
  // sample() and collect(). For each i, pool() applies the head heads[i] (ModelSpec::head_at) to tokens
  // [starts[i], starts[i + 1]) of the batch. The result is valid until the next forward().
  virtual bool pools() const { return false; }
  virtual Result<std::span<const float>> pool(std::span<const std::int32_t>, std::span<const std::uint8_t>) {
    return failure(ErrorCode::unsupported, "this executor only samples tokens: it cannot pool");
  }

  // Returns null if LoRA adapters are not supported.
  virtual AdapterSlots* adapters() { return nullptr; }
  // Returns null if the model has no image or audio input and no cross attention.
  virtual MediaEncoder* media_encoder() { return nullptr; }

  // Returns null if this device cannot export KV blocks.
  virtual BlockExchange* block_exchange() { return nullptr; }

  // Returns null if the engine's steps do not depend on other engines.
  virtual LockStep* lock_step() { return nullptr; }

  // Frees the memory of the cache, and its contents. No step may run. Returns unsupported if this executor
  // keeps the memory.
  virtual Result<> release_cache() {
    return failure(ErrorCode::unsupported, "this device cannot free the memory of its KV cache");
  }
  // Must be called between release_cache() and the next use of the cache. Returns an error if there is not
  // enough memory.
  virtual Result<> restore_cache() { return {}; }
};

}  // namespace octavo
