// For tests: reads tests/data/text, which tools/goldens/make_text_goldens.py writes.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/tokenizer.h"

namespace octavo::fixtures {

inline const std::filesystem::path kRoot = "tests/data/text";

inline const std::vector<std::string> kTokenizers = {"gpt2", "llama3", "qwen", "llama2", "mistral", "gemma",
                                                     "t5",   "xlmr",   "bert", "gpt1",   "plamo2",  "plamo3"};

inline boost::json::value read_json(const std::filesystem::path& path) {
  const Result<std::string> text = read_text_file(kRoot / path, 16u << 20);
  CHECK(text.has_value(), "{} (tests run from the repository root)", text.error().message);
  return boost::json::parse(*text);
}

inline Tokenizer tokenizer(const std::string& name) {
  Result<Tokenizer> loaded = Tokenizer::load(kRoot / "tokenizers" / name);
  CHECK(loaded.has_value(), "{}", loaded.error().message);
  return *std::move(loaded);
}

inline std::vector<std::int32_t> ids(const boost::json::value& list) {
  return boost::json::value_to<std::vector<std::int32_t>>(list);
}

inline std::string text(const boost::json::value& value) { return std::string(value.as_string()); }

}  // namespace octavo::fixtures
