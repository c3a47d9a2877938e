// Serializes structs, for messages between programs of the same release. Fields follow each other; numbers
// are little-endian; strings and vectors begin with their size. Reflection finds the fields. Both ends
// compare the layout_hash of their messages.
#pragma once

#include <array>
#include <bit>
#include <boost/pfr.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace octavo {

static_assert(std::endian::native == std::endian::little);

// Specialize it for a class that is not an aggregate. Members: `As`, an aggregate; As out(const T&); bool
// in(const As&, T&).
template <class T>
struct Packed;

template <class T>
concept PackedScalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept PackedAs = requires { typename Packed<T>::As; };

// Bytes: std::string or a vector of std::byte.
template <class Bytes>
class Packer {
 public:
  explicit Packer(Bytes& out) : out_(out) {}

  template <PackedScalar T>
  void put(T value) {
    append(&value, sizeof value);
  }
  void put(const std::string& text) { put(std::span<const char>(text)); }
  template <class T>
  void put(std::span<const T> items) {
    put(std::uint64_t{items.size()});
    if constexpr (PackedScalar<T>) {
      append(items.data(), items.size_bytes());
    } else {
      for (const T& item : items) put(item);
    }
  }
  template <class T>
  void put(const std::vector<T>& items) {
    put(std::span<const T>(items));
  }
  template <class T, std::size_t N>
  void put(const std::array<T, N>& items) {
    if constexpr (PackedScalar<T>) {
      append(items.data(), sizeof items);
    } else {
      for (const T& item : items) put(item);
    }
  }
  template <class A, class B>
  void put(const std::pair<A, B>& pair) {
    put(pair.first);
    put(pair.second);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class... Alternatives>
  void put(const std::variant<Alternatives...>& value) {
    put(static_cast<std::uint8_t>(value.index()));
    std::visit([this](const auto& held) { put(held); }, value);
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T& value) {
    if constexpr (PackedAs<T>) {
      put(Packed<T>::out(value));
    } else {
      boost::pfr::for_each_field(value, [this](const auto& field) { put(field); });
    }
  }

 private:
  void append(const void* data, std::size_t size) {
    const std::size_t begin = out_.size();
    out_.resize(begin + size);
    if (size > 0) std::memcpy(out_.data() + begin, data, size);
  }

  Bytes& out_;
};

// If bytes are missing or a value is out of range, good() returns false from then on, and nothing more is
// read.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool good() const { return good_; }
  bool complete() const { return good_ && bytes_.empty(); }  // whether all bytes were read

  void get(bool& value) {
    std::uint8_t byte = 0;
    get(byte);
    good_ = good_ && byte <= 1;
    value = good_ && byte == 1;
  }
  template <PackedScalar T>
  void get(T& value) {
    take(&value, sizeof value);
  }
  void get(std::string& text) {
    text.resize(size(sizeof(char)));
    take(text.data(), text.size());
  }
  template <class T>
  void get(std::vector<T>& items) {
    if constexpr (PackedScalar<T>) {
      items.resize(size(sizeof(T)));
      take(items.data(), items.size() * sizeof(T));
    } else {
      items.resize(size(1));  // each item has at least one byte
      for (T& item : items) get(item);
    }
  }
  template <class T, std::size_t N>
  void get(std::array<T, N>& items) {
    if constexpr (PackedScalar<T> && !std::same_as<T, bool>) {
      take(items.data(), sizeof items);
    } else {
      for (T& item : items) get(item);
    }
  }
  template <class A, class B>
  void get(std::pair<A, B>& pair) {
    get(pair.first);
    get(pair.second);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool has_value = false;
    get(has_value);
    value.reset();
    if (has_value) get(value.emplace());
  }
  template <class... Alternatives>
  void get(std::variant<Alternatives...>& value) {
    std::uint8_t kind = 0;
    get(kind);
    get_kind(value, kind, std::index_sequence_for<Alternatives...>());
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T& value) {
    if constexpr (PackedAs<T>) {
      typename Packed<T>::As as{};
      get(as);
      good_ = good_ && Packed<T>::in(as, value);
    } else {
      boost::pfr::for_each_field(value, [this](auto& field) { get(field); });
    }
  }

 private:
  template <class Variant, std::size_t... Kinds>
  void get_kind(Variant& value, std::size_t kind, std::index_sequence<Kinds...>) {
    good_ = good_ && kind < sizeof...(Kinds);
    if (good_) ((kind == Kinds && (get(value.template emplace<Kinds>()), true)) || ...);
  }
  // Reads the number of items. Returns 0 if the remaining bytes cannot contain them.
  std::size_t size(std::size_t item_bytes) {
    std::uint64_t items = 0;
    get(items);
    good_ = good_ && items <= bytes_.size() / item_bytes;
    return good_ ? items : 0;
  }
  void take(void* data, std::size_t size) {
    good_ = good_ && size <= bytes_.size();
    if (!good_ || size == 0) return;
    std::memcpy(data, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::byte> bytes_;
  bool good_ = true;
};

namespace layout {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ (value + 0x9E3779B97F4A7C15)) * 0xBF58476D1CE4E5B9;
  return hash ^ (hash >> 29);
}

template <class T>
struct Of {  // hashes the fields of an aggregate in order
  static constexpr std::uint64_t add(std::uint64_t hash) {
    constexpr std::size_t fields = boost::pfr::tuple_size_v<T>;
    hash = mix(hash, 0x100 + fields);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((hash = Of<boost::pfr::tuple_element_t<I, T>>::add(hash)), ...);
      return hash;
    }(std::make_index_sequence<fields>());
  }
};
template <PackedScalar T>
struct Of<T> {
  static constexpr std::uint64_t add(std::uint64_t hash) {
    const int kind = std::is_enum_v<T>             ? 4
                     : std::same_as<T, bool>       ? 3
                     : std::is_floating_point_v<T> ? 2
                     : std::is_signed_v<T>         ? 1
                                                   : 0;
    return mix(hash, sizeof(T) * 8 + static_cast<std::uint64_t>(kind));
  }
};
template <PackedAs T>
struct Of<T> {
  static constexpr std::uint64_t add(std::uint64_t hash) { return Of<typename Packed<T>::As>::add(hash); }
};

// Hashes kTemplate, the number of a class template, and the types of the template's arguments.
template <std::uint64_t kTemplate, class... Held>
struct OfHeld {
  static constexpr std::uint64_t add(std::uint64_t hash) {
    hash = mix(hash, 0x1000 + kTemplate);
    ((hash = Of<Held>::add(hash)), ...);
    return hash;
  }
};
template <>
struct Of<std::string> : OfHeld<1> {};
template <class T>
struct Of<std::vector<T>> : OfHeld<2, T> {};
template <class T>
struct Of<std::optional<T>> : OfHeld<3, T> {};
template <class A, class B>
struct Of<std::pair<A, B>> : OfHeld<4, A, B> {};
template <class... Alternatives>
struct Of<std::variant<Alternatives...>> : OfHeld<5, Alternatives...> {};
template <class T, std::size_t N>
struct Of<std::array<T, N>> : OfHeld<16 + N, T> {};
template <class T>
struct Of<std::span<const T>> : OfHeld<2, T> {};  // a span is read as a vector

}  // namespace layout

// Hash of the types of all fields, including nested ones. Messages with different layouts have different
// hashes.
template <class... Messages>
constexpr std::uint64_t layout_hash() {
  std::uint64_t hash = 0;
  ((hash = layout::Of<Messages>::add(hash)), ...);
  return hash;
}

// Returns true if these fields, packed one after another, can be read as a Message.
template <class Message, class... Fields>
constexpr bool packs_as() {
  std::uint64_t hash = layout::mix(0, 0x100 + sizeof...(Fields));
  ((hash = layout::Of<Fields>::add(hash)), ...);
  return hash == layout_hash<Message>();
}

// Returns the index of Message in the variant, or the number of alternatives if the variant does not have
// it.
template <class Message, class... Alternatives>
constexpr std::uint8_t kind_in(const std::variant<Alternatives...>*) {
  std::uint8_t kind = 0;
  bool found = false;
  ((found = found || std::same_as<Message, Alternatives>, kind += !found), ...);
  return kind;
}

}  // namespace octavo
