#pragma once

#include <string>

namespace octavo {

// Expands the suffix of an integer as vLLM does: "16k" is 16000, "16K" and "16KiB" are 16384. The other
// suffixes are m and M, g and G, t and T. Other text is returned unchanged.
std::string expand_suffix(std::string text);

}  // namespace octavo
