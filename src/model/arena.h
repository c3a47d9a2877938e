// Workspaces: each part of a network lists its working memory in reserve(). A first pass measures the list. A
// second pass binds it to memory that a decoder has allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/view.h"

namespace octavo {

// Workspaces of one block, taken one after the other from memory that all blocks share. A Scratch without
// memory measures.
class Scratch {
 public:
  explicit Scratch(View memory = {}) : memory_(memory) {}
  // Measures: `most` receives the maximum that this object and its copies have taken.
  explicit Scratch(std::int64_t& most) : most_(&most) {}

  View take(DType type, std::initializer_list<std::int64_t> shape);
  std::int64_t bytes() const { return used_; }

 private:
  View memory_;  // u8 [bytes]
  std::int64_t used_ = 0;
  std::int64_t* most_ = nullptr;
};

// Rows that parts of a network pass to each other, or keep. A type names a slot. The part that writes the
// slot declares the type. Slots of one type have numbers.
class Slots {
 public:
  // Adds a slot. If several parts request the same slot, it gets the largest requested size.
  template <class Key>
  void add(DType type, std::initializer_list<std::int64_t> shape, int number = 0) {
    add(&kKey<Key>, number, View::of(nullptr, type, shape));
  }
  // Empty if no part has requested the slot.
  template <class Key>
  View all(int number = 0) const {
    for (const Slot& slot : slots_)
      if (slot.key == &kKey<Key> && slot.number == number) return slot.view;
    return {};
  }

  std::int64_t bytes() const;
  // Binds the slots to memory of bytes().
  void bind(const Buffer& memory);

 private:
  template <class Key>
  static constexpr char kKey = 0;  // its address identifies the type
  struct Slot {
    const char* key;
    int number;
    View view;
  };

  void add(const char* key, int number, const View& view);

  std::vector<Slot> slots_;
};

// i32 [tokens]: 0, 1 ..
struct EveryRow {};

// Argument of reserve(): the largest step, and the allocators.
struct Arena {
  std::int64_t tokens;      // maximum tokens of a step
  std::int64_t logit_rows;  // maximum rows of a call of a head
  DType activation;
  DType sums;       // format of a half's output: f32 if ranks add it up, else the activations' format
  Scratch scratch;  // workspaces of blocks; a block measures its inner block with a copy
  Slots& slots;

  // A row for each token.
  template <class Key>
  void rows(DType type, std::int64_t columns, int number = 0) const {
    slots.add<Key>(type, {tokens, columns}, number);
  }
  void every_row() const { slots.add<EveryRow>(DType::i32, {tokens}); }
};

}  // namespace octavo
