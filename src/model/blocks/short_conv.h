// The short convolution.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace octavo {

class Block;
class GgufLayers;
class Namer;

// A short convolution between two gates (Liquid AI, LFM2, 2025). The input gives B, C and x, each as wide
// as the network; out = C * conv(B * x).
struct ShortConv {
  int width = 0;
  bool bias = false;  // bias of the projections and of the convolution

  // Names in the checkpoint.
  struct Names {
    std::string in = "conv.in_proj";
    std::string conv = "conv.conv";
    std::string out = "conv.out_proj";
    static Names of_gguf(const GgufLayers& layers);
  };
};

std::unique_ptr<Block> make_block(const ShortConv& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
