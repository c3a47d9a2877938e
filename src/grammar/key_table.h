// Numbers keys, which are short lists of ids. Equal keys have equal numbers. New keys get 0, 1, 2, ...
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/intern_table.h"

namespace octavo::grammar {

class KeyTable {
 public:
  using Key = std::span<const std::uint32_t>;

  std::size_t size() const { return begin_.size() - 1; }
  std::size_t byte_size() const {
    return table_.byte_size() + text_.size() * sizeof(text_[0]) + begin_.size() * sizeof(begin_[0]);
  }
  void clear() {
    table_.clear();
    text_.clear();
    begin_.assign(1, 0);
  }

  // Returns the key's number, and adds the key if it is new. The key must not point into this table.
  std::uint32_t number(Key key) {
    return table_.find_or_add(
        hash(key), [&](std::uint32_t id) { return std::ranges::equal((*this)[id], key); },
        [&] {
          text_.insert(text_.end(), key.begin(), key.end());
          begin_.push_back(text_.size());
          return static_cast<std::uint32_t>(size() - 1);
        });
  }
  // The result is valid until a key is added.
  Key operator[](std::uint32_t number) const {
    return Key(text_).subspan(begin_[number], begin_[number + 1] - begin_[number]);
  }

 private:
  static std::uint64_t hash(Key key) {
    std::uint64_t h = key.size();
    for (const std::uint32_t id : key) {
      h = (h ^ id) * 0x9E3779B97F4A7C15u;
      h ^= h >> 32;
    }
    return h * 0x9E3779B97F4A7C15u;
  }

  InternTable table_;
  std::vector<std::uint32_t> text_;
  std::vector<std::size_t> begin_{0};
};

}  // namespace octavo::grammar
