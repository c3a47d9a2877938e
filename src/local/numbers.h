#pragma once

#include <string>

namespace octavo {

// Replaces the suffix of an integer as vLLM does: "16k" becomes 16000 and "16K" becomes 16384; likewise m
// and M, g and G, t and T. "16KiB" is "16K". Any other text is returned unchanged.
std::string expand_suffix(std::string text);

}  // namespace octavo
