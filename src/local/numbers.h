// Numbers as people write them on a command line.
#pragma once

#include <string>

namespace octavo {

// "16k" is 16,000 and "16K" 16,384, as vLLM reads integers; likewise m and M, g and G, t and T. Any other
// text stays as it is.
std::string expand_suffix(std::string text);

}  // namespace octavo
