// Python's pickles, protocols 2 to 5, read as data: what a pickle would call is a value here
// (PickleValue::call) and nothing is called. Opcodes as in CPython's Lib/pickletools.py; those that plain
// data and calls need.
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
    global,      // text: "module.name"
    call,        // items: what is called, its arguments (a sequence); then keys and values that were set
    persistent,  // items: what it is known by
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text = {};                  // inside the pickle, or of a global in the Pickle
  std::vector<const PickleValue*> items = {};  // of a dict: a key, its value, the next key ...

  bool is(Kind wanted) const { return kind == wanted; }
  // Whether it is what `callable`, "module.name", returns.
  bool is_call_of(std::string_view callable) const {
    return kind == Kind::call && items[0]->kind == Kind::global && items[0]->text == callable;
  }
};

// A pickle's values, which may refer to one another in any way, in circles, too.
struct Pickle {
  const PickleValue* top = nullptr;
  std::size_t bytes = 0;  // up to its end: of what was given
  std::deque<PickleValue> values;
  std::deque<std::string> names;
};

// Reads the pickle that `data` begins with. Errors are ErrorCode::corrupt and begin with `what`.
Result<Pickle> read_pickle(std::span<const std::byte> data, std::string_view what);

}  // namespace octavo
