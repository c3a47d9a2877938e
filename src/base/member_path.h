// Members of members as values: member_path<&EngineStats::blocks, &BlockStats::used> is a function from an
// EngineStats to its number of used blocks. Tables use them like pointers to members.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

namespace octavo {

// Returns the member at the end of a path. Each element of the path is a pointer to a member, or a function
// of the object to which the elements before it lead.
template <class From>
constexpr auto& follow(From& object) {
  return object;
}
template <auto First, auto... Rest, class From>
constexpr auto& follow(From& object) {
  return follow<Rest...>(std::invoke(First, object));
}

// Type of a path; it does not depend on the members in the path.
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
