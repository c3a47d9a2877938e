// Interface that runs steps: the forward pass and the sampling of one engine, on one device or several ranks.
//
//   forward(batch)   enqueue the forward pass
//   sample(rows)     enqueue the choice of tokens from its logits
//   collect()        wait for the oldest sampled step and return its tokens
//   pool()           in place of both, for models that do not generate: vectors of sequences or tokens
//
// forward and sample are two calls so that the host can work in between: it commits the step before and fills
// grammar masks. A host backend does the work inside the calls.
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

// Maximum number of encoded media tokens in memory: the longest prompt, or several conversations.
inline std::int64_t image_tokens_max(int max_model_len) { return std::max(max_model_len, 8192); }

// LoRA adapters in memory, each in a slot that Batch::adapters names.
class AdapterSlots {
 public:
  // Reads an adapter's folder; any thread. Errors: see AdapterReader.
  virtual Result<AdapterFile> read_adapter(const std::string& directory) const = 0;
  // Adds to the adapter in a slot. Error: not enough memory.
  virtual Result<> put_adapter(int slot, std::span<const AdapterFile::Change> changes) = 0;
  virtual void drop_adapter(int slot) = 0;

 protected:
  ~AdapterSlots() = default;
};

// Encodes images, sound and prompts for cross attention. Each stays in its slot (Batch::images,
// Batch::sources) until the slot is reused.
class MediaEncoder {
 public:
  // Begins to encode a part and drops an unfinished one. Error: not enough memory.
  virtual Result<> begin_media(int slot, const MediaPart& part) = 0;
  // Encodes a slice of about `rows` rows through all layers, so that steps can run in between. True: the part
  // is encoded. The result does not depend on `rows`.
  virtual bool advance_media(int rows) = 0;
  virtual void drop_media(int slot) = 0;

 protected:
  ~MediaEncoder() = default;
};

// Blocks of the KV cache as bytes, which leave it and enter it.
class BlockExchange {
 public:
  // Format of exported blocks. Error (unsupported): why blocks cannot leave this engine.
  virtual Result<BlockFormat> block_format() const = 0;
  // Contents of a piece in BlockFormat, format.bytes long. Any thread, for blocks and states that no step
  // writes (export) or uses (import) meanwhile.
  virtual void export_piece(KvPlace place, std::span<std::byte> out) const = 0;
  virtual void import_piece(KvPlace place, std::span<const std::byte> bytes) = 0;
  // Host memory for copies of pieces, pinned for a GPU. Error: not enough memory.
  virtual Result<Buffer> allocate_staging(std::size_t bytes) { return allocate_host(bytes); }
  // True if the cache is in host memory.
  virtual bool in_host_memory() const { return true; }
  // Blocks in their native layout, for engines with an equal layout.
  virtual NativeBlocks native_blocks() { return {}; }

 protected:
  ~BlockExchange() = default;
};

// Steps in lock step with other engines that share experts (model/blocks/expert_exchange.h). While an engine
// computes a step, the others compute one as well, or assist.
class LockStep {
 public:
  // Connections to the other engines.
  virtual std::vector<int> engine_sockets() const = 0;
  // True if another engine has begun a step that this engine has not. False: arms the watch, unless no
  // further step is possible.
  virtual bool is_called(ArrivalWatch& watch) = 0;
  // Computes this engine's experts in that step. Error: as of Executor::forward().
  virtual Result<> assist() = 0;

 protected:
  ~LockStep() = default;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // True when the next forward may be enqueued before the last step is collected: the tokens it is still
  // sampling are then listed in Batch::pending.
  virtual bool asynchronous() const = 0;
  // Pipeline stages: n forward passes may be enqueued before the first of them is sampled and collected. More
  // than one: not asynchronous.
  virtual int stages() const { return 1; }
  int steps_in_flight() const { return asynchronous() ? 2 : stages(); }

  // Errors of all three: the device failed for good.
  virtual Result<> forward(const Batch& batch) = 0;

  // Row i samples from the logits of the batch's token tokens[i]. The rows' pointers are read during the
  // call. There may be no rows.
  virtual Result<> sample(std::span<const std::int32_t> tokens, std::span<const SampleRow> rows) = 0;

  // One entry for each row, in order; valid until the next sample().
  virtual Result<std::span<SampledToken>> collect() = 0;

  // True for a model with a head: forward() gets whole prompts, and pool() replaces sample() and collect().
  // For each i it returns the output of head heads[i] (ModelSpec::head_at) for the batch's tokens [starts[i],
  // starts[i + 1]). Valid until the next forward().
  virtual bool pools() const { return false; }
  virtual Result<std::span<const float>> pool(std::span<const std::int32_t>, std::span<const std::uint8_t>) {
    return failure(ErrorCode::unsupported, "this executor only samples tokens: it cannot pool");
  }

  // Null: LoRA adapters are not supported.
  virtual AdapterSlots* adapters() { return nullptr; }
  // Null: the model has no images, sound or cross attention.
  virtual MediaEncoder* media_encoder() { return nullptr; }

  // Null: KV blocks do not leave this device.
  virtual BlockExchange* block_exchange() { return nullptr; }

  // Null: the engine's steps do not depend on other engines.
  virtual LockStep* lock_step() { return nullptr; }

  // Frees the cache's memory and contents; nothing may be using it. Later steps allocate it again. Error
  // (unsupported): this device keeps the memory.
  virtual Result<> release_cache() {
    return failure(ErrorCode::unsupported, "this device cannot free the memory of its KV cache");
  }
};

}  // namespace octavo
