// Functions for Qwen's vision models.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "model/config.h"
#include "model/spec.h"

namespace octavo {

// Number of rotated pairs of a head for each axis: time, height and width (mrope_section).
struct AxisSections {
  std::array<int, 3> absent;  // value if the field is missing
  // true: the axes alternate while height and width have pairs left; the remaining pairs belong to time.
  // false: all pairs of time come first, then those of height, then those of width.
  bool interleaved = false;
};
Result<> set_axes(ModelSpec& spec, const Config& config, const AxisSections& by);

// Turns a dense network without positions into an encoder for images of any size, from its vision_config:
// rotary embeddings of rows and columns, and a projector of squares of patches. The caller sets the tensors'
// names.
Result<> make_qwen_tower(ModelSpec& spec, const Config& config);
// Returns the names of the encoder's tensors, except those of the MLPs, the last norm and the projector.
Names qwen_tower_names(const std::string& prefix);

// Adds the encoder to the language model. out_dim: the field of vision_config with the width of the encoder's
// output rows.
Result<ModelSpec> with_qwen_tower(ModelSpec spec, const Config& config,
                                  Result<ModelSpec> (*describe_tower)(Config), std::string_view out_dim);

}  // namespace octavo
