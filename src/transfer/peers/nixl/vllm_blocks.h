// Converts blocks of vLLM's KV cache to the layout in which Octavo exchanges blocks (block_format.h).
//
// A block of vLLM has the keys and values of one layer, in an order that depends on vLLM's attention backend,
// on its KV cache layout and, for vLLM's CPU backend, on the instruction set: see the table in
// vllm_blocks.cc.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "transfer/block_format.h"
#include "transfer/peers/nixl/vllm_handshake.h"

namespace octavo {

// Positions in bytes of the numbers of one head's keys, or of its values, in a block. The number `e` of token
// `t` is at first + tokens[t] + elements[e].
struct VllmPlane {
  std::size_t first = 0;
  std::vector<std::size_t> tokens{}, elements{};
};

bool this_machine_has_amx();

class VllmBlocks {
 public:
  // Returns unsupported if no blocks can be converted to this format.
  static Result<> check(const BlockFormat& format);
  // Returns invalid_argument if blocks of the agent do not fit into blocks of the format. The error names the
  // field and both values.
  // amx: whether the processors of both machines have AMX, which changes the layout of vLLM's CPU backend.
  static Result<VllmBlocks> of(const BlockFormat& format, const VllmAgent& agent,
                               bool amx = this_machine_has_amx());

  std::size_t layers() const { return layers_; }
  // tokens of a block, and bytes of one layer of a block
  std::size_t tokens() const { return tokens_; }
  std::size_t layer_bytes() const { return 2 * heads_ * tokens_ * vector_bytes_; }
  std::size_t bytes() const { return layers_ * layer_bytes(); }

  // Copies tokens [from, from + count) of a block to tokens [to, to + count) of `piece`. block: all layers,
  // one after the other. piece: the contents of a block of the format.
  void copy(std::span<const std::byte> block, std::size_t from, std::size_t count, std::span<std::byte> piece,
            std::size_t to) const;

 private:
  void copy_vector(const VllmPlane& plane, const std::byte* from, std::byte* to) const;

  std::size_t layers_ = 0, heads_ = 0, tokens_ = 0;
  std::size_t vector_bytes_ = 0, element_bytes_ = 0;  // bytes of one key, and of one number of it
  std::size_t piece_tokens_ = 0;
  std::size_t head_stride_ = 0;
  VllmPlane planes_[2]{};  // of keys and of values
};

}  // namespace octavo
