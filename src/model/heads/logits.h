// Head that continues a text: logits of its next token.
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
  // rows: i32 [r], of all of a step; out: f32 [r, vocab]. Ranks other than 0 fill only their part.
  // adapters: those of the rows, by index in `rows`, or null if no adapter changes the output matrix.
  void run(const Step& step, const View& rows, const View& out, const StepAdapters* adapters) const;

 private:
  const Ends& ends_;
  std::int64_t dim_, first_, count_;     // this rank's part of the vocabulary
  std::vector<std::size_t> part_bytes_;  // [ranks + 1]: where the ranks' parts of a row of logits begin
  float scale_, soft_cap_;
  VectorParameter bias_;
};

}  // namespace octavo
