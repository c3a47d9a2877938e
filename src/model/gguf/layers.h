// Finds out which tensors the layers of a GGUF file have.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "weights/gguf.h"

namespace octavo {

// The names of tensors in any layer of a GGUF file. They decide properties for which the metadata has no key.
class GgufLayers {
 public:
  explicit GgufLayers(const Gguf& gguf) {
    for (const StoredTensor& tensor : gguf.tensors)
      if (const std::size_t dot = tensor.name.find('.', kBegin.size());
          tensor.name.starts_with(kBegin) && dot != tensor.name.npos)
        names_.insert(tensor.name.substr(dot + 1));
  }
  bool have(std::string_view name) const { return names_.contains(name); }

 private:
  static constexpr std::string_view kBegin = "blk.";
  std::set<std::string, std::less<>> names_;
};

}  // namespace octavo
