// Converts KV blocks between the CPU backend's layout and the exchange layout.
//
// Keys are transposed, 16 tokens at a time, and values are interleaved by pairs of rows. The code uses
// vectors of 16 bytes, which every processor has, and is about as fast as a copy.
#include "kernels/kv_exchange.h"

#include <array>
#include <cstring>

#include "kernels/cpu/kv_layout.h"

namespace octavo::cpu {
namespace {

enum class Way : std::uint8_t { out, in };

template <Way way, class T>
void move(T* inside, T* outside) {
  if constexpr (way == Way::out)
    *outside = *inside;
  else
    *inside = *outside;
}

constexpr std::size_t kVectorBytes = 16;
template <class T>
constexpr std::int64_t kLanes = kVectorBytes / sizeof(T);
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename Lanes<T>::Vector;

template <class T>
Vector<T> load(const T* from) {
  Vector<T> vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class T>
void store(T* to, Vector<T> vector) {
  std::memcpy(to, &vector, sizeof vector);
}

// Interleaves the first halves or the second halves of a and b: a0 b0 a1 b1 ..
template <class T, bool second>
Vector<T> zip(Vector<T> a, Vector<T> b) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    constexpr std::size_t n = sizeof...(i), from = second ? n / 2 : 0;
    return __builtin_shufflevector(a, b, static_cast<int>(from + i / 2 + (i % 2) * n)...);
  }(std::make_index_sequence<kLanes<T>>());
}

// Returns the even lanes or the odd lanes of a and b.
template <class T, bool odd>
Vector<T> unzip(Vector<T> a, Vector<T> b) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b, static_cast<int>(2 * i + (odd ? 1 : 0))...);
  }(std::make_index_sequence<kLanes<T>>());
}

// Transposes a square of `lanes` rows and columns in log2(lanes) steps. Each step interleaves the halves of
// the rows. Strides are distances between rows.
template <class T>
void transpose_tile(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
  constexpr auto n = static_cast<std::size_t>(kLanes<T>);
  std::array<Vector<T>, n> rows, zipped;
  for (std::size_t r = 0; r < n; ++r) rows[r] = load(from + static_cast<std::int64_t>(r) * from_stride);
  for (std::size_t round = 1; round < n; round *= 2) {
    for (std::size_t r = 0; r < n / 2; ++r) {
      zipped[2 * r] = zip<T, false>(rows[r], rows[r + n / 2]);
      zipped[2 * r + 1] = zip<T, true>(rows[r], rows[r + n / 2]);
    }
    rows = zipped;
  }
  for (std::size_t r = 0; r < n; ++r) store(to + static_cast<std::int64_t>(r) * to_stride, rows[r]);
}

// Converts the keys of one group of tokens. A Word has `unit` dimensions of a token.
template <Way way, class Word>
void move_keys(std::byte* group, std::byte* rows, std::int64_t words) {
  auto* inside = reinterpret_cast<Word*>(group);
  auto* outside = reinterpret_cast<Word*>(rows);
  constexpr std::int64_t n = kLanes<Word>;
  std::int64_t i = 0;
  for (; i + n <= words; i += n)
    for (std::int64_t t = 0; t < kGroupTokens; t += n) {
      Word* tile = inside + i * kGroupTokens + t;
      Word* row = outside + t * words + i;
      if constexpr (way == Way::out)
        transpose_tile(tile, kGroupTokens, row, words);
      else
        transpose_tile(row, words, tile, kGroupTokens);
    }
  for (; i < words; ++i)
    for (std::int64_t t = 0; t < kGroupTokens; ++t)
      move<way>(inside + i * kGroupTokens + t, outside + t * words + i);
}

// Converts two neighbouring rows of values, element by element.
template <Way way, class Element>
void move_pair(Element* inside, Element* first, Element* second, std::int64_t dim) {
  constexpr std::int64_t n = kLanes<Element>;
  std::int64_t d = 0;
  for (; d + n <= dim; d += n) {
    Element* pair = inside + 2 * d;
    if constexpr (way == Way::out) {
      const Vector<Element> a = load(pair), b = load(pair + n);
      store(first + d, unzip<Element, false>(a, b));
      store(second + d, unzip<Element, true>(a, b));
    } else {
      const Vector<Element> a = load(first + d), b = load(second + d);
      store(pair, zip<Element, false>(a, b));
      store(pair + n, zip<Element, true>(a, b));
    }
  }
  for (; d < dim; ++d) {
    move<way>(inside + 2 * d, first + d);
    move<way>(inside + 2 * d + 1, second + d);
  }
}

template <Way way, class Element>
void move_values(std::byte* group, std::byte* rows, const KvLayout& layout, std::int64_t dim) {
  auto* outside = reinterpret_cast<Element*>(rows);
  for (std::int64_t t = 0; t < kGroupTokens; t += layout.unit) {
    auto* inside = reinterpret_cast<Element*>(group + layout.value(t, 0));
    Element* row = outside + t * dim;
    if (layout.unit == 2)
      move_pair<way>(inside, row, row + dim, dim);
    else
      std::memcpy(way == Way::out ? row : inside, way == Way::out ? inside : row,
                  static_cast<std::size_t>(dim) * sizeof(Element));
  }
}

template <Way way>
void move_keys(const KvLayout& layout, std::int64_t dim, std::byte* group, std::byte* rows) {
  const std::int64_t words = dim / layout.unit;
  if (layout.element_bytes * layout.unit == 2) return move_keys<way, std::uint16_t>(group, rows, words);
  move_keys<way, std::uint32_t>(group, rows, words);
}

template <Way way>
void move_values(const KvLayout& layout, std::int64_t dim, std::byte* group, std::byte* rows) {
  switch (layout.element_bytes) {
    case 1:
      return move_values<way, std::uint8_t>(group, rows, layout, dim);
    case 2:
      return move_values<way, std::uint16_t>(group, rows, layout, dim);
    default:
      return move_values<way, std::uint32_t>(group, rows, layout, dim);
  }
}

template <Way way>
void move_block(const KvLayer& cache, std::int64_t number, std::byte* outside) {
  const KvSpec& spec = cache.spec;
  if (spec.shared_rows()) {
    std::byte* rows = cache.data + number * cache.stride_bytes;
    const auto bytes = static_cast<std::size_t>(kv_exchange_bytes(spec));
    std::memcpy(way == Way::out ? outside : rows, way == Way::out ? rows : outside, bytes);
    return;
  }
  const KvLayout layout(spec);
  std::byte* block = cache.data + number * cache.stride_bytes;
  const std::int64_t row_bytes = spec.head_dim * layout.element_bytes;
  const std::int64_t parts = kv_exchange_parts(spec);
  // Number of key vectors in a block. It equals the number of value vectors.
  const std::int64_t each = std::int64_t{spec.kv_heads} * spec.block_size;
  auto* scales = outside + parts * each * row_bytes;  // only for i8
  constexpr std::int64_t kScale = sizeof(float);
  for (std::int64_t head = 0; head < spec.kv_heads; ++head)
    for (std::int64_t group = 0; group < layout.groups; ++group) {
      const std::int64_t vector = head * spec.block_size + group * kGroupTokens;
      move_keys<way>(layout, spec.head_dim, block + layout.keys(head, group), outside + vector * row_bytes);
      if (parts > 1)
        move_values<way>(layout, spec.head_dim, block + layout.values(head, group),
                         outside + (each + vector) * row_bytes);
      if (spec.dtype != DType::i8) continue;
      for (std::int64_t which = 0; which < parts; ++which) {
        std::byte* inside = block + layout.scales(head, group) + which * kGroupTokens * kScale;
        std::byte* scale_bytes = scales + (which * each + vector) * kScale;
        std::memcpy(way == Way::out ? scale_bytes : inside, way == Way::out ? inside : scale_bytes,
                    kGroupTokens * kScale);
      }
    }
}

}  // namespace

const KvExchange kKvExchange{
    .layout = "groups of 16",
    .joins = false,
    .export_block = [](const KvLayer& cache, std::int64_t block,
                       std::span<std::byte> out) { move_block<Way::out>(cache, block, out.data()); },
    .import_block =
        [](const KvLayer& cache, std::int64_t block, std::span<const std::byte> bytes) {
          // const_cast is safe, because with Way::in, move_block only reads the bytes.
          move_block<Way::in>(cache, block, const_cast<std::byte*>(bytes.data()));
        }};

}  // namespace octavo::cpu
