#include "grammar/fuzz.h"
#include "grammar/lark.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto [source, operations] = octavo::grammar::testing::split(data, size);
  octavo::grammar::testing::drive(octavo::grammar::ebnf_or_lark_grammar(source), operations);
  return 0;
}
