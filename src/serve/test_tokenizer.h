// A tokenizer for tests. Every byte is a token whose id is the byte's value, and there are at least two
// special tokens.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "request/sampling_params.h"
#include "text/tokenizer.h"

namespace octavo {

inline constexpr TokenId kEndToken = 256;   // "<|end|>", ends a text
inline constexpr TokenId kMarkToken = 257;  // "<|mark|>"
inline constexpr int kTestVocabulary = 258;

inline std::string as_utf8(unsigned code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xC0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// Returns a byte-level BPE tokenizer without merges. As in GPT-2, printable Latin-1 bytes represent
// themselves, and characters from U+0100 on represent all other bytes. special: texts of more special tokens,
// whose ids begin with kTestVocabulary.
inline Tokenizer byte_tokenizer(const std::vector<std::string>& special = {}) {
  namespace json = boost::json;
  json::object vocabulary;
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    vocabulary[as_utf8(itself ? byte : next++)] = byte;
  }
  const auto added = [](TokenId id, std::string_view text) {
    return json::object{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                        {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  json::array all_added{added(kEndToken, "<|end|>"), added(kMarkToken, "<|mark|>")};
  for (const std::string& text : special)
    all_added.push_back(added(kEndToken + static_cast<TokenId>(all_added.size()), text));
  const json::object byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const json::object all{{"version", "1.0"},
                         {"truncation", nullptr},
                         {"padding", nullptr},
                         {"added_tokens", all_added},
                         {"normalizer", nullptr},
                         {"pre_tokenizer", byte_level},
                         {"post_processor", nullptr},
                         {"decoder", byte_level},
                         {"model",
                          {{"type", "BPE"},
                           {"dropout", nullptr},
                           {"unk_token", nullptr},
                           {"vocab", vocabulary},
                           {"merges", json::array()}}}};
  return Tokenizer::parse(json::serialize(all)).value();
}

inline std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

}  // namespace octavo
