// Workspaces of all parts of a network. They are measured and then allocated once, before the first step.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/model.h"
#include "model/step.h"

namespace octavo {

struct DecoderLimits {
  int max_tokens = 0;        // tokens in a step
  int max_logit_rows = 0;    // rows in a call of a head
  int max_adapter_rank = 0;  // 0: no adapters
  // layers before which the residual is copied for a drafter (HiddenInput::layers)
  std::vector<int> kept_layers = {};
};

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
