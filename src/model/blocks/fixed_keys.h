// Keys and values of the checkpoint that every query sees (AttentionScores::fixed_keys).
#pragma once

#include "model/parameters.h"

namespace octavo {

class FixedKeys {
 public:
  FixedKeys(const Attention& spec, const Namer& name);

  void list(ParameterList& list) { list.add(keys_, values_); }
  // Must be called once, after loading. The vectors must be in host memory.
  void normalise(const NormParameter& norm);
  View keys() const { return in_heads(keys_); }
  View values() const { return in_heads(values_); }

 private:
  // f32 [keys, heads, dim]
  View in_heads(const VectorParameter& rows) const {
    return View::of(rows.value.data, rows.value.dtype,
                    {rows.value.size(0) / heads_, heads_, rows.value.size(1)});
  }

  std::int64_t heads_;
  VectorParameter keys_, values_;
};

}  // namespace octavo
