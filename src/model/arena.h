// Working memory of a network. Each part requests its memory in reserve(). The decoder calls reserve() twice:
// the first call measures the total size, the second call assigns the memory that the decoder has allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tensor/buffer.h"
#include "tensor/view.h"

namespace octavo {

// Assigns the workspaces of one block from one memory area. All blocks use the same area, because they run
// one after another. A Scratch without memory only measures the size.
class Scratch {
 public:
  explicit Scratch(View memory = {}) : memory_(memory) {}
  // Only measures. `most` receives the largest number of bytes that this object or a copy has assigned.
  explicit Scratch(std::int64_t& most) : most_(&most) {}

  View take(DType type, std::initializer_list<std::int64_t> shape);
  std::int64_t bytes() const { return used_; }

 private:
  View memory_;  // u8 [bytes]
  std::int64_t used_ = 0;
  std::int64_t* most_ = nullptr;
};

// Buffers that parts of a network write for other parts, or keep during a step. A slot is identified by a C++
// type, which the part that writes the slot declares, and by a number if several slots have the same type.
class Slots {
 public:
  // Adds a slot. If several parts request the same slot, the largest request wins.
  template <class Key>
  void add(DType type, std::initializer_list<std::int64_t> shape, int number = 0) {
    add(&kKey<Key>, number, View::of(nullptr, type, shape));
  }
  // Returns the slot's buffer, or an empty view if no part has requested the slot.
  template <class Key>
  View all(int number = 0) const {
    for (const Slot& slot : slots_)
      if (slot.key == &kKey<Key> && slot.number == number) return slot.view;
    return {};
  }

  std::int64_t bytes() const;
  // Assigns memory to the slots. `memory` must have bytes() bytes.
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

// Slot, i32 [tokens]: 0, 1, 2 ..
struct EveryRow {};

// Argument of reserve(): the size of the largest step, and the allocators.
struct Arena {
  std::int64_t tokens;      // maximum number of tokens in a step
  std::int64_t logit_rows;  // maximum number of rows in a call of a head
  DType activation;
  // format of the output of a mixer or feed-forward: f32 if ranks add up their outputs, otherwise the format
  // of activations
  DType sums;
  Scratch scratch;  // workspaces of one block; a block passes a copy to its inner block
  Slots& slots;

  template <class Key>
  void rows(DType type, std::int64_t columns, int number = 0) const {
    slots.add<Key>(type, {tokens, columns}, number);
  }
  void every_row() const { slots.add<EveryRow>(DType::i32, {tokens}); }
};

}  // namespace octavo
