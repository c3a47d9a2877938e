// Reads Python's pickles, protocols 2 to 5, as data. A call in the pickle becomes a value
// (PickleValue::call) and is never executed. Supports the opcodes of CPython's Lib/pickletools.py that
// plain data and calls need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo {

inline constexpr std::size_t kPickleBytesMax = 100'000'000;
inline constexpr std::size_t kPickleValuesMax = 4'000'000;

struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    integer,  // also True and False
    real,
    text,
    sequence,  // a tuple or a list
    dict,
    global,  // text: "module.name"
    call,    // items: the callable, a sequence of arguments, then keys and values that were set afterwards
    persistent,  // items: the persistent id
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text = {};                  // points into the pickle, or into Pickle::names for a global
  std::vector<const PickleValue*> items = {};  // items of a list; key, value, key, value .. of a dict

  bool is(Kind wanted) const { return kind == wanted; }
  // `callable` has the form "module.name".
  bool is_call_of(std::string_view callable) const {
    return kind == Kind::call && items[0]->kind == Kind::global && items[0]->text == callable;
  }
};

// All values of a pickle. Values may refer to each other, even in cycles.
struct Pickle {
  const PickleValue* top = nullptr;
  std::size_t bytes = 0;  // number of bytes that the pickle has in the input
  std::deque<PickleValue> values;
  std::deque<std::string> names;
};

// Reads the pickle at the start of `data`. Errors: corrupt; their messages begin with `what`, the name of the
// file.
Result<Pickle> read_pickle(std::span<const std::byte> data, std::string_view what);

}  // namespace octavo
