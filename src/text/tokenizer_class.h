// Rules of transformers' tokenizer classes. This is the only list of classes; bridge/src/config.rs only
// reads fields of tokenizer_config.json.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string_view>

namespace octavo {

// Returns the class that transformers chooses for a model_type in config.json, or nullopt.
std::optional<std::string_view> tokenizer_class_of(std::string_view model_type);

// Special tokens of a class; "": the class has none.
struct ClassTokens {
  std::string_view bos, eos;
};
ClassTokens class_tokens(const boost::json::object& config);

// Applies the rules of the class to the fields of tokenizer_config.json: adds the defaults, and removes
// fields that the class ignores. The fields are add_bos_token, add_eos_token, add_prefix_space,
// do_lower_case, tokenize_chinese_chars and strip_accents.
void apply_class(boost::json::object& config);

}  // namespace octavo
