// Fuzzer. Any list of tensors must become packed and plain matrices, or an error. Unpacking a joined matrix
// must succeed or return an error.
#include <array>
#include <string>

#include "base/check.h"
#include "weights/packed_matrix.h"

namespace {

// Reads values from the fuzzer's input, and zeros after its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : bytes_(reinterpret_cast<const std::byte*>(data), size) {}
  int byte() {
    if (bytes_.empty()) return 0;
    const int value = std::to_integer<int>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return value;
  }
  template <class T, std::size_t n>
  const T& pick(const std::array<T, n>& items) {
    return items[static_cast<std::size_t>(byte()) % n];
  }
  bool empty() const { return bytes_.empty(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

struct Format {
  std::string_view name;
  std::int64_t bytes;
  std::optional<octavo::DType> dtype;
};
constexpr std::array kFormats = {Format{"I32", 4, octavo::DType::i32}, Format{"I64", 8, octavo::DType::i64},
                                 Format{"F32", 4, octavo::DType::f32}, Format{"F16", 2, octavo::DType::f16},
                                 Format{"I8", 1, octavo::DType::i8},   Format{"F8_E4M3", 1, std::nullopt},
                                 Format{"U8", 1, octavo::DType::u8},   Format{"F8_E8M0", 1, std::nullopt}};
constexpr std::array kNames = {"a.qweight",
                               "a.qzeros",
                               "a.scales",
                               "a.g_idx",
                               "a.weight_packed",
                               "a.weight_scale",
                               "a.weight_shape",
                               "a.weight_zero_point",
                               "a.weight_g_idx",
                               "a.weight",
                               "a.weight_scale_inv",
                               "a.scale",
                               "b.weight",
                               "a.weight_scale_2",
                               "a.weight_global_scale",
                               "a_blocks",
                               "a_scales"};
// The products of some of these overflow.
constexpr std::array<std::int64_t, 10> kExtents = {
    0, 1, 2, 3, 4, 8, 16, 33, std::int64_t{1} << 40, std::int64_t{1} << 62};
constexpr int kPackings = static_cast<int>(octavo::Packing::modelopt) + 1;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const octavo::PackedFormat format{
      .packing = static_cast<octavo::Packing>(input.byte() % kPackings),
      .bits = input.byte() % 2 == 0 ? 4 : 8,
      .group = input.byte() % 20,
      .zero_offset = input.byte() % 2,
      .block_rows = input.byte() % 4,
      .block_cols = 1 + input.byte() % 4,
  };
  std::vector<octavo::StoredTensor> tensors;
  for (const char* name : kNames) {
    if (input.byte() % 3 == 0) continue;
    const Format& kind = input.pick(kFormats);
    octavo::StoredTensor tensor{.name = name, .format = kind.name, .dtype = kind.dtype};
    std::int64_t bytes = kind.bytes;
    bool overflows = false;
    for (int rank = input.byte() % 4; rank > 0; --rank) {
      tensor.shape.push_back(input.pick(kExtents));
      overflows |= __builtin_mul_overflow(bytes, tensor.shape.back(), &bytes);
    }
    // The checkpoint reader rejects shapes that do not match the bytes.
    if (overflows || bytes > std::ssize(input.bytes())) continue;
    tensor.bytes = input.bytes().first(static_cast<std::size_t>(bytes));
    tensors.push_back(std::move(tensor));
  }
  const auto joined = octavo::join_packed(std::move(tensors), format);
  if (!joined) return 0;
  octavo::ThreadPool pool(1);
  for (const octavo::StoredTensor& tensor : *joined) {
    if (!tensor.packed) continue;
    const auto made = octavo::unpack(tensor, pool);
    if (made) CHECK(made->part.rows() == tensor.shape[0] && made->part.cols() == tensor.shape[1]);
  }
  return 0;
}
