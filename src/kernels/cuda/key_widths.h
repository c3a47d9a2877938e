// Limits on the width of keys, except those of latent attention.
#pragma once

namespace octavo::cuda {

// Maximum width of a key, and of a key in attention.cu. Wider keys use attention_plain.cu.
constexpr int kMaxKey = 1024, kMaxTiledKey = 256;

}  // namespace octavo::cuda
