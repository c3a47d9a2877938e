// Writes valid and invalid GGUF files, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf_metadata.h"

namespace octavo {

class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::uint64_t tensor_count_extra = 0;  // number of tensors that the header counts, but the table lacks
  std::string rest;                      // appended after the data

  template <class T>
  static std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }
  static std::string raw_text(std::string_view text) {
    return raw(std::uint64_t{text.size()}) + std::string(text);
  }

  GgufBuilder& value(std::string_view key, GgufType type, std::string_view bytes) {
    head_ += raw_text(key) + raw(type) + std::string(bytes);
    ++keys_;
    return *this;
  }
  GgufBuilder& u32(std::string_view key, std::uint32_t value) {
    return this->value(key, GgufType::u32, raw(value));
  }
  GgufBuilder& u16(std::string_view key, std::uint16_t value) {
    return this->value(key, GgufType::u16, raw(value));
  }
  GgufBuilder& f32(std::string_view key, float value) { return this->value(key, GgufType::f32, raw(value)); }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    return this->value(key, GgufType::text, raw_text(value));
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& items) {
    std::string bytes = raw(GgufType::text) + raw(std::uint64_t{items.size()});
    for (const std::string& item : items) bytes += raw_text(item);
    return value(key, GgufType::list, bytes);
  }

  // `sizes` are in the file's order, the fastest-varying dimension first. If `offset` is not negative, it
  // replaces the correct offset.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& sizes, std::uint32_t format,
                      std::string_view bytes, std::int64_t offset = -1) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment, '\0');
    table_ += raw_text(name) + raw(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) table_ += raw(size);
    table_ += raw(format) + raw(offset >= 0 ? static_cast<std::uint64_t>(offset) : data_.size());
    data_ += bytes;
    ++tensors_;
    return *this;
  }

  std::string build() const {
    std::string file =
        "GGUF" + raw(version) + raw(tensors_ + tensor_count_extra) + raw(keys_) + head_ + table_;
    file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
    return file + data_ + rest;
  }

 private:
  std::string head_, table_, data_;
  std::uint64_t keys_ = 0, tensors_ = 0;
};

}  // namespace octavo
