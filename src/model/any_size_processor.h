// Readers of image processors that keep about the image's own size (AnySizeRule).
#pragma once

#include "base/error.h"
#include "media/processor_config.h"
#include "model/config.h"

namespace octavo {

// Read Qwen2-VL's image processor, and those of GLM-4.1V, Cosmos 3 Edge, MiniMax-M3 and PaddleOCR-VL.
// min_pixels and max_pixels take precedence over `size`.
Result<> read_any_size(const Config& config, media::ProcessorConfig& out);
Result<> read_glm_size(const Config& config, media::ProcessorConfig& out);
Result<> read_edge_size(const Config& config, media::ProcessorConfig& out);
Result<> read_m3_size(const Config& config, media::ProcessorConfig& out);
Result<> read_paddle_size(const Config& config, media::ProcessorConfig& out);

// Ovis 2.5 and 2.6 have SigLIP's image processor, but images of any size (vLLM's Ovis2_5Processor). The size
// of patches is in config.json (`model`), and limits of pixels may be in the file of the image processor.
Result<> read_ovis_size(const Config& model, const Config& processor, media::ProcessorConfig& out);

}  // namespace octavo
