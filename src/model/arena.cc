#include "model/arena.h"

#include "base/check.h"

namespace octavo {
namespace {

constexpr std::int64_t kAlignment = 256;  // bytes

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

View Scratch::take(DType type, std::initializer_list<std::int64_t> shape) {
  View view = View::of(nullptr, type, shape);
  if (memory_) view.data = memory_.as<std::uint8_t>() + used_;
  used_ += aligned(view.bytes());
  CHECK(!memory_ || used_ <= memory_.bytes(), "{} bytes of {}", used_, memory_.bytes());
  if (most_ != nullptr) *most_ = std::max(*most_, used_);
  return view;
}

void Slots::add(const char* key, int number, const View& view) {
  for (Slot& slot : slots_)
    if (slot.key == key && slot.number == number) {
      CHECK(slot.view.dtype == view.dtype, "one slot in {} and in {}", name(slot.view.dtype),
            name(view.dtype));
      if (view.bytes() > slot.view.bytes()) slot.view = view;
      return;
    }
  slots_.push_back({key, number, view});
}

std::int64_t Slots::bytes() const {
  std::int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += aligned(slot.view.bytes());
  return bytes;
}

void Slots::bind(const Buffer& memory) {
  std::int64_t used = 0;
  for (Slot& slot : slots_) {
    slot.view.data = static_cast<std::byte*>(memory.data()) + used;
    used += aligned(slot.view.bytes());
  }
  CHECK(static_cast<std::size_t>(used) <= memory.bytes());
}

}  // namespace octavo
