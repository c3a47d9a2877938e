// Workspaces of all parts of a network: measured, and allocated once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "model/step.h"

namespace octavo {

struct DecoderLimits {
  int max_tokens = 0;        // per step
  int max_logit_rows = 0;    // per call of a head
  int max_adapter_rank = 0;  // 0: no adapters
  std::vector<int> kept_layers =
      {};  // before each of these layers the residual is kept (HiddenInput::layers)
};

// Bytes of a decoder's workspaces.
std::int64_t workspace_bytes(const ModelSpec& spec, DType activation, const DecoderLimits& limits);

class Workspaces {
 public:
  static Result<Workspaces> allocate(const Model& model, Backend& backend, const DecoderLimits& limits);

  const Slots& slots() const { return slots_; }
  Scratch of_block() const;
  Scratch of_adapters() const;

 private:
  Workspaces(Slots slots, Buffer memory) : slots_(std::move(slots)), memory_(std::move(memory)) {}

  Slots slots_;
  Buffer memory_;
};

}  // namespace octavo
