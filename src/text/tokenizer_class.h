// Rules of the tokenizer classes of transformers. It has the only list of classes: bridge/src/config.rs reads
// the fields of tokenizer_config.json, and does not know its class.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string_view>

namespace octavo {

// Returns the class that transformers chooses by the model_type of config.json; nullopt: none.
std::optional<std::string_view> tokenizer_class_of(std::string_view model_type);

// Special tokens of a class; "": none.
struct ClassTokens {
  std::string_view bos, eos;
};
ClassTokens class_tokens(const boost::json::object& config);

// Sets the fields of tokenizer_config.json on which its class decides: adds the class's defaults, and removes
// the fields that the class ignores. These fields are add_bos_token and add_eos_token, add_prefix_space, and
// do_lower_case, tokenize_chinese_chars and strip_accents.
void apply_class(boost::json::object& config);

}  // namespace octavo
