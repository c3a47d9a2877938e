// Runs the fuzzer's bytes as operations on difficult grammars. The first byte selects the grammar.
#include "grammar/fuzz.h"
#include "grammar/json_schema.h"
#include "grammar/lark.h"
#include "grammar/regex.h"

namespace octavo::grammar {
namespace {

const std::vector<Grammar>& grammars() {
  static const std::vector<Grammar> all = [] {
    std::vector<Grammar> out;
    for (const std::string_view text :
         {R"_(root ::= root "a" | "ab" | root root)_", R"_(root ::= ("a" | "ab" root){2,70} "b")_",
          R"_(root ::= a a a
a ::= "a"* b "a"*
b ::= "b"* a? "1"*)_",
          R"_(root ::= x root "a" | "b" | <|x|>
x ::= "a"? "b"?)_"})
      out.push_back(*ebnf_or_lark_grammar(text));
    for (
        const std::string_view text :
        {"true",
         R"_({"type":"object","properties":{"a":{"$ref":"#"},"ab":{"type":"string","maxLength":70}},"additionalProperties":{"type":"array"}})_",
         R"_({"type":"array","items":{"anyOf":[{"type":"string","pattern":"^(ab)+c?$"},{"type":"number","minimum":-12.5,"maximum":1e3},{"$ref":"#"}]}})_"})
      out.push_back(*json_schema_grammar(text));
    for (const std::string_view text : {"(a|ab)(c|bcd){2,90}(d*)", "((a{2,60}b?){3,70}12|\\w*)+", ".{5,200}"})
      out.push_back(*regex_grammar(text));
    return out;
  }();
  return all;
}

}  // namespace
}  // namespace octavo::grammar

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto& all = octavo::grammar::grammars();
  octavo::grammar::testing::drive(all[data[0] % all.size()],
                                  std::string_view(reinterpret_cast<const char*>(data + 1), size - 1));
  return 0;
}
