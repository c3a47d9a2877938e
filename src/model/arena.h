// Workspaces. Each part of a network declares its working memory in reserve(). The first call measures the
// total size; the second call assigns memory, which the decoder has allocated in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/view.h"

namespace octavo {

// Assigns workspaces to one block, one after the other, from memory that all blocks share. Without memory, it
// only measures.
class Scratch {
 public:
  explicit Scratch(View memory = {}) : memory_(memory) {}
  // Measures only. `most` receives the maximum number of bytes that this object and its copies have assigned.
  explicit Scratch(std::int64_t& most) : most_(&most) {}

  View take(DType type, std::initializer_list<std::int64_t> shape);
  std::int64_t bytes() const { return used_; }

 private:
  View memory_;  // u8 [bytes]
  std::int64_t used_ = 0;
  std::int64_t* most_ = nullptr;
};

// Buffers of rows that parts of a network keep or pass to each other. A slot has a type, which is declared by
// the part that writes the slot, and a number if several slots have the same type.
class Slots {
 public:
  // Adds a slot. If several parts request the same slot, its size is the largest requested one.
  template <class Key>
  void add(DType type, std::initializer_list<std::int64_t> shape, int number = 0) {
    add(&kKey<Key>, number, View::of(nullptr, type, shape));
  }
  // Returns the slot's buffer; empty if no part has requested it.
  template <class Key>
  View all(int number = 0) const {
    for (const Slot& slot : slots_)
      if (slot.key == &kKey<Key> && slot.number == number) return slot.view;
    return {};
  }

  std::int64_t bytes() const;
  // Assigns parts of `memory`, which has bytes() bytes, to the slots.
  void bind(const Buffer& memory);

 private:
  template <class Key>
  static constexpr char kKey = 0;  // the address of kKey identifies the type
  struct Slot {
    const char* key;
    int number;
    View view;
  };

  void add(const char* key, int number, const View& view);

  std::vector<Slot> slots_;
};

// i32 [tokens]: 0, 1, 2 ..
struct EveryRow {};

// Argument of reserve(): size of the largest step, and the allocators.
struct Arena {
  std::int64_t tokens;      // maximum number of tokens in a step
  std::int64_t logit_rows;  // maximum number of rows in a call of a head
  DType activation;
  DType sums;       // format of the output of half a layer: f32 if ranks add up their outputs, otherwise the
                    // activations' format
  Scratch scratch;  // workspaces of blocks; a block passes a copy to its inner block
  Slots& slots;

  // Adds a slot with one row per token.
  template <class Key>
  void rows(DType type, std::int64_t columns, int number = 0) const {
    slots.add<Key>(type, {tokens, columns}, number);
  }
  void every_row() const { slots.add<EveryRow>(DType::i32, {tokens}); }
};

}  // namespace octavo
