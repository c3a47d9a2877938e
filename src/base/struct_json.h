// Converts structs to JSON objects and back. Each field becomes a member of the same name; fields with
// their default value are left out. Names and types come from reflection, so new fields need no code here.
#pragma once

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/pfr.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/exact_json.h"

namespace octavo {

namespace struct_json {

template <class T>
struct Holder {
  T value;
};
// It has no definition, because only its address is used.
template <class T>
extern const Holder<T> kUndefined;

template <class Pointer>
struct Field {
  Pointer pointer;
};
// The compiler's name of this function contains the path of the field that the argument points to.
template <auto kField>
consteval std::string_view signature() {
  return __PRETTY_FUNCTION__;
}

consteval bool in_name(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

template <class T, std::size_t kIndex>
consteval std::string_view find_name() {
  const std::string_view text = signature<Field{&boost::pfr::get<kIndex>(kUndefined<T>.value)}>();
  std::size_t end = text.rfind('}');
  while (!in_name(text[end - 1])) --end;
  std::size_t begin = end;
  while (in_name(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}
template <class T, std::size_t kIndex>
inline constexpr std::string_view kName = find_name<T, kIndex>();

template <class T, class Visit>
void for_each_field(T& object, Visit&& visit) {
  using Struct = std::remove_const_t<T>;
  [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    (visit(kName<Struct, kIndex>, boost::pfr::get<kIndex>(object)), ...);
  }(std::make_index_sequence<boost::pfr::tuple_size_v<Struct>>());
}

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <Number T>
boost::json::value write(const T& value) {
  if constexpr (std::same_as<T, bool>) return value;
  if constexpr (std::is_floating_point_v<T>) return static_cast<double>(value);
  if constexpr (std::is_enum_v<T>) return static_cast<std::int64_t>(value);
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) return std::int64_t{value};
  if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>) return std::uint64_t{value};
}
inline boost::json::value write(const std::string& text) { return boost::json::value(text); }
template <class T>
  requires std::is_class_v<T>
boost::json::value write(const T& object);
template <class A, class B>
boost::json::value write(const std::pair<A, B>& pair);
template <class T>
boost::json::value write(const std::optional<T>& held);
template <class T>
boost::json::value write(const std::vector<T>& items);

template <class Items>
boost::json::value write_items(const Items& items) {
  boost::json::array out;
  out.reserve(items.size());
  for (const auto& item : items) out.push_back(write(item));
  return out;
}
template <class T>
boost::json::value write(const std::vector<T>& items) {
  return write_items(items);
}
template <class T, std::size_t kSize>
boost::json::value write(const std::array<T, kSize>& items) {
  return write_items(items);
}
template <class A, class B>
boost::json::value write(const std::pair<A, B>& pair) {
  return boost::json::array{write(pair.first), write(pair.second)};
}
template <class T>
boost::json::value write(const std::optional<T>& held) {
  return held ? write(*held) : boost::json::value();
}

template <class T>
boost::json::object write_fields(const T& object) {
  boost::json::object out;
  for_each_field(object, [&out](std::string_view name, const auto& field) { out[name] = write(field); });
  return out;
}
template <class T>
  requires std::is_class_v<T>
boost::json::value write(const T& object) {
  static const boost::json::object kDefault = write_fields(T{});
  boost::json::object out = write_fields(object);
  for (const auto& [name, value] : kDefault)
    if (out[name] == value) out.erase(name);
  return out;
}

inline std::unexpected<Error> wrong(std::string_view field, std::string_view type) {
  return invalid(field, "must be {}", type);
}

template <Number T>
Result<> read(const boost::json::value& value, std::string_view field, T& out) {
  if constexpr (std::same_as<T, bool>) {
    if (!value.is_bool()) return wrong(field, "true or false");
    out = value.get_bool();
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto number = rounded_number(value);
    if (!number) return wrong(field, "a number");
    out = static_cast<T>(*number);
  } else {
    using Integer = std::conditional_t<std::is_enum_v<T>, std::int32_t, T>;
    boost::system::error_code error;
    const auto number = value.to_number<Integer>(error);
    if (error) return wrong(field, "an integer in the field's range");
    out = static_cast<T>(number);
  }
  return {};
}
inline Result<> read(const boost::json::value& value, std::string_view field, std::string& out) {
  if (!value.is_string()) return wrong(field, "a string");
  out = value.get_string();
  return {};
}
template <class T>
  requires std::is_class_v<T>
Result<> read(const boost::json::value& value, std::string_view field, T& out);
template <class A, class B>
Result<> read(const boost::json::value& value, std::string_view field, std::pair<A, B>& out);
template <class T>
Result<> read(const boost::json::value& value, std::string_view field, std::optional<T>& out);

template <class T>
Result<> read(const boost::json::value& value, std::string_view field, std::vector<T>& out) {
  if (!value.is_array()) return wrong(field, "an array");
  out.clear();
  for (const boost::json::value& item : value.get_array()) TRY_VOID(read(item, field, out.emplace_back()));
  return {};
}
template <class T, std::size_t kSize>
Result<> read(const boost::json::value& value, std::string_view field, std::array<T, kSize>& out) {
  if (!value.is_array() || value.get_array().size() != kSize) return wrong(field, "an array of its size");
  for (std::size_t i = 0; i < kSize; ++i) TRY_VOID(read(value.get_array()[i], field, out[i]));
  return {};
}
template <class A, class B>
Result<> read(const boost::json::value& value, std::string_view field, std::pair<A, B>& out) {
  if (!value.is_array() || value.get_array().size() != 2) return wrong(field, "an array of two values");
  TRY_VOID(read(value.get_array()[0], field, out.first));
  return read(value.get_array()[1], field, out.second);
}
template <class T>
Result<> read(const boost::json::value& value, std::string_view field, std::optional<T>& out) {
  out.reset();
  if (value.is_null()) return {};
  return read(value, field, out.emplace());
}
template <class T>
  requires std::is_class_v<T>
Result<> read(const boost::json::value& value, std::string_view field, T& out) {
  if (!value.is_object()) return wrong(field, "an object");
  const auto path = [field](std::string_view name) {
    return field.empty() ? std::string(name) : fmt::format("{}.{}", field, name);
  };
  Result<> result;
  for (const auto& [key, member] : value.get_object()) {
    bool known = false;
    for_each_field(out, [&](std::string_view name, auto& to) {
      if (name != std::string_view(key)) return;
      known = true;
      result = read(member, path(name), to);
    });
    if (!known) return invalid(path(key), "is not a field of this version of Octavo");
    if (!result) return result;
  }
  return {};
}

}  // namespace struct_json

template <class T>
boost::json::value to_json(const T& object) {
  return struct_json::write(object);
}

// Reads the result of to_json(). Missing fields keep their default value. Returns an error on a field that
// has another type or does not exist in the struct.
template <class T>
Result<T> from_json(const boost::json::value& value) {
  T out{};
  TRY_VOID(struct_json::read(value, "", out));
  return out;
}

}  // namespace octavo
