// The head for text generation: computes the logits of the next token.
#pragma once

#include <cstddef>
#include <vector>

#include "model/ends.h"
#include "model/heads/head_rows.h"
#include "model/spec.h"

namespace octavo {

class LogitsHead final : public NetworkPart {
 public:
  LogitsHead(const ModelSpec& spec, const Ends& ends);

  void list(ParameterList& list) override { list.add(bias_); }
  void reserve(Arena arena) const override;
  // `rows`, i32 [r], are indices into all rows of the step. `out` is f32 [r, vocab]; ranks other than 0 fill
  // only their part. `adapters` are indexed like `rows`, or null if no adapter changes the output matrix.
  void run(const Step& step, const View& rows, const View& out, const StepAdapters* adapters) const;

 private:
  const Ends& ends_;
  // width of the network; first token and number of tokens in this rank's part of the vocabulary
  std::int64_t dim_, first_, count_;
  // [ranks + 1]: offset of each rank's part in a row of logits, in bytes
  std::vector<std::size_t> part_bytes_;
  float scale_, soft_cap_;
  VectorParameter bias_;
};

}  // namespace octavo
