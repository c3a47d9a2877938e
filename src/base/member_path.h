// Pointers to nested members: member_path<&EngineStats::blocks, &BlockStats::used> is a function that
// returns the number of used blocks of an EngineStats. Tables of metrics use them.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

namespace octavo {

// Returns the member at the end of the path. Each element is a pointer to a member, or a function of the
// object that the path has reached.
template <class From>
constexpr auto& follow(From& object) {
  return object;
}
template <auto First, auto... Rest, class From>
constexpr auto& follow(From& object) {
  return follow<Rest...>(std::invoke(First, object));
}

// A path from an Object to a Value. All such paths have the same type.
template <class Object, class Value>
struct MemberPath {
  const Value& (*of_constant)(const Object&);
  Value& (*of_variable)(Object&);

  const Value& operator()(const Object& object) const { return of_constant(object); }
  Value& operator()(Object& object) const { return of_variable(object); }
};

template <auto... Path, class Object, class Value>
constexpr auto member_path_from(Value Object::*) {
  using Last = std::remove_reference_t<decltype(follow<Path...>(std::declval<Object&>()))>;
  return MemberPath<Object, Last>{[](const Object& object) -> const Last& { return follow<Path...>(object); },
                                  [](Object& object) -> Last& { return follow<Path...>(object); }};
}

template <auto First, auto... Rest>
inline constexpr auto member_path = member_path_from<First, Rest...>(First);

}  // namespace octavo
