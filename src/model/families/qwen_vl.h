// Functions for Qwen's vision models, which other families also use.
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
  // If true, the axes alternate while height and width have pairs left; the remaining pairs belong to time.
  // If false, all pairs of time come first, then height, then width.
  bool interleaved = false;
};
Result<> set_axes(ModelSpec& spec, const Config& config, const AxisSections& by);

// Converts a dense network without positions to an encoder for images of any size, from its vision_config:
// rotary embeddings for rows and columns, and a projector for squares of patches. The caller sets the tensor
// names.
Result<> make_qwen_tower(ModelSpec& spec, const Config& config);
// Describes Qwen2.5-VL's encoder from its vision_config.
Result<ModelSpec> describe_qwen2_5_tower(Config config);
// Describes Qwen3-VL's encoder without DeepStack from its vision_config.
Result<ModelSpec> describe_qwen3_vl_tower(Config config);
// Tensor names for the encoder, except for MLPs, last norm and projector.
Names qwen_tower_names(const std::string& prefix);

// Adds the encoder to the language model. `out_dim` is the field of vision_config that has the width of the
// encoder's output.
Result<ModelSpec> with_qwen_tower(ModelSpec spec, const Config& config,
                                  Result<ModelSpec> (*describe_tower)(Config), std::string_view out_dim);

// Describe Qwen3-VL and Qwen3.5 with images. Without vision_config, the result is the language model.
Result<ModelSpec> describe_qwen3_vl(const Config& config);
Result<ModelSpec> describe_qwen3_5_vl(const Config& config);

// The fields of thinker_config in the config.json of an Omni model.
struct Thinker {
  Config config;
  Config text;  // text_config with the defaults of its architecture
};
Result<Thinker> read_thinker(const Config& config, std::string_view text_architecture);

}  // namespace octavo
