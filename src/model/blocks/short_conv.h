// Configuration (spec) and tensor names of the short convolution of LFM2.
#pragma once

#include <string>

namespace octavo {

class GgufLayers;

// A short convolution between two gates (Liquid AI, LFM2, 2025). A projection of the input gives B, C and x,
// each as wide as the network. The output is a projection of C * conv(B * x).
struct ShortConv {
  int width = 0;
  bool bias = false;  // projections and convolution have biases
  int ahead = 0;      // see ConvArgs::ahead

  struct Names {
    std::string in = "conv.in_proj";
    std::string conv = "conv.conv";
    std::string out = "conv.out_proj";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
