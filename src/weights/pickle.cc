#include "weights/pickle.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

namespace octavo {
namespace {

using Kind = PickleValue::Kind;

// A virtual machine for pickles: a stack with marks, and a memo.
class Machine {
 public:
  Machine(std::string_view code, std::string_view what) : code_(code), what_(what) {}

  Result<Pickle> run() {
    while (!stopped_ && problem_.empty()) {
      const std::size_t at = at_;
      step(static_cast<unsigned char>(take(1).value_or(std::string_view("\0", 1))[0]));
      if (pickle_.values.size() > kPickleValuesMax) refuse("more than {} values", kPickleValuesMax);
      if (!problem_.empty())
        return failure(ErrorCode::corrupt, "{}: pickle, byte {}: {}", what_, at, problem_);
    }
    pickle_.top = stack_.back();
    pickle_.bytes = at_;
    return std::move(pickle_);
  }

 private:
  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        return void(unsigned_of(1));
      case 0x95:  // FRAME
        return void(unsigned_of(8));
      case '.':
        stopped_ = check(!stack_.empty(), "an empty stack at the end");
        return;
      case '(':
        return marks_.push_back(stack_.size());
      case '0':  // POP
        pop();
        return;
      case '}':
        return push({.kind = Kind::dict});
      case ']':
      case ')':
        return push({.kind = Kind::sequence});
      case 't':  // TUPLE
      case 'l':  // LIST
        return push({.kind = Kind::sequence, .items = pop_to_mark()});
      case 0x85:  // TUPLE1
      case 0x86:
      case 0x87:
        return push({.kind = Kind::sequence, .items = pop_many(opcode - 0x84U)});
      case 'N':
        return push({});
      case 0x88:  // NEWTRUE
      case 0x89:
        return push({.kind = Kind::integer, .integer = opcode == 0x88});
      case 'K':
        return push_integer(static_cast<std::int64_t>(unsigned_of(1)));
      case 'M':
        return push_integer(static_cast<std::int64_t>(unsigned_of(2)));
      case 'J':
        return push_integer(static_cast<std::int32_t>(unsigned_of(4)));
      case 0x8a:  // LONG1
        return push_long(unsigned_of(1));
      case 'G':
        return push({.kind = Kind::real, .real = std::bit_cast<double>(__builtin_bswap64(unsigned_of(8)))});
      case 'U':   // SHORT_BINSTRING, of Python 2
      case 0x8c:  // SHORT_BINUNICODE
        return push_text(unsigned_of(1));
      case 'T':  // BINSTRING
      case 'X':  // BINUNICODE
        return push_text(unsigned_of(4));
      case 0x8d:  // BINUNICODE8
        return push_text(unsigned_of(8));
      case 'c': {  // GLOBAL
        const auto module = take_line(), name = take_line();
        return push_global(module, name);
      }
      case 0x93: {  // STACK_GLOBAL
        const PickleValue& name = *pop();
        const PickleValue& module = *pop();
        if (check(name.is(Kind::text) && module.is(Kind::text), "a global without a name"))
          push_global(module.text, name.text);
        return;
      }
      case 'q':
        return memorize(unsigned_of(1));
      case 'r':
        return memorize(unsigned_of(4));
      case 0x94:  // MEMOIZE
        return memorize(memo_.size());
      case 'h':
        return recall(unsigned_of(1));
      case 'j':
        return recall(unsigned_of(4));
      case 'Q':  // BINPERSID
        return push({.kind = Kind::persistent, .items = pop_many(1)});
      case 'R':     // REDUCE
      case 0x81: {  // NEWOBJ
        auto items = pop_many(2);
        if (check(items.size() == 2 && items[1]->is(Kind::sequence), "a call without arguments"))
          push({.kind = Kind::call, .items = std::move(items)});
        return;
      }
      case 'b':  // BUILD: the state of an object, in addition to its items
        pop();
        return;
      case 'a':
        return add(Kind::sequence, pop_many(1));
      case 'e':
        return add(Kind::sequence, pop_to_mark());
      case 's':
        return add(Kind::dict, pop_many(2));
      case 'u': {
        auto items = pop_to_mark();
        if (check(items.size() % 2 == 0, "a key without a value")) add(Kind::dict, std::move(items));
        return;
      }
      default:
        return refuse("unknown opcode {:#04x}", opcode);
    }
  }

  template <class... Args>
  void refuse(fmt::format_string<Args...> text, Args&&... args) {
    if (problem_.empty()) problem_ = fmt::format(text, std::forward<Args>(args)...);
  }
  bool check(bool holds, std::string_view problem) {
    if (!holds) refuse("{}", problem);
    return holds && problem_.empty();
  }

  std::optional<std::string_view> take(std::uint64_t bytes) {
    if (bytes > code_.size() - at_) {
      refuse("it ends early");
      return std::nullopt;
    }
    const std::string_view taken = code_.substr(at_, static_cast<std::size_t>(bytes));
    at_ += taken.size();
    return taken;
  }
  std::string_view take_line() {
    const std::size_t end = code_.find('\n', at_);
    if (!check(end != std::string_view::npos, "it ends early")) return {};
    const std::string_view line = code_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }
  std::uint64_t unsigned_of(std::size_t bytes) {
    std::uint64_t value = 0;
    const auto taken = take(bytes);
    for (std::size_t i = 0; taken && i < bytes; ++i)
      value |= std::uint64_t{static_cast<unsigned char>((*taken)[i])} << (8 * i);
    return value;
  }

  void push(PickleValue&& value) {
    if (problem_.empty()) stack_.push_back(&pickle_.values.emplace_back(std::move(value)));
  }
  void push_integer(std::int64_t value) { push({.kind = Kind::integer, .integer = value}); }
  // Minimal two's complement.
  void push_long(std::uint64_t bytes) {
    if (!check(bytes <= 8, "an integer of more than 64 bits")) return;
    std::uint64_t value = unsigned_of(bytes);
    const bool negative = bytes > 0 && bytes < 8 && (value >> (8 * bytes - 1)) != 0;
    if (negative) value |= ~std::uint64_t{0} << (8 * bytes);
    push_integer(static_cast<std::int64_t>(value));
  }
  void push_text(std::uint64_t bytes) {
    push({.kind = Kind::text, .text = take(bytes).value_or(std::string_view())});
  }
  void push_global(std::string_view module, std::string_view name) {
    push({.kind = Kind::global, .text = pickle_.names.emplace_back(fmt::format("{}.{}", module, name))});
  }

  PickleValue* pop() {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (!check(stack_.size() > floor, "the stack is empty")) return &nothing_;
    PickleValue* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::vector<const PickleValue*> pop_many(std::size_t count) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (!check(stack_.size() >= floor + count, "the stack is empty")) return {};
    return pop_from(stack_.size() - count);
  }
  std::vector<const PickleValue*> pop_to_mark() {
    if (!check(!marks_.empty(), "there is no mark")) return {};
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return pop_from(begin);
  }
  std::vector<const PickleValue*> pop_from(std::size_t begin) {
    std::vector<const PickleValue*> items(stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin);
    return items;
  }

  // Adds items to the value on top of the stack. Keys can also be set on the result of a call, such as an
  // OrderedDict.
  void add(Kind kind, std::vector<const PickleValue*> items) {
    PickleValue* top = pop();
    if (!check(top->is(kind) || (kind == Kind::dict && top->is(Kind::call)), "items of what cannot have any"))
      return;
    stack_.push_back(top);
    top->items.insert(top->items.end(), items.begin(), items.end());
  }

  void memorize(std::uint64_t place) {
    PickleValue* top = pop();
    if (!problem_.empty()) return;
    stack_.push_back(top);
    memo_[place] = top;
  }
  void recall(std::uint64_t place) {
    const auto found = memo_.find(place);
    if (check(found != memo_.end(), "nothing was kept under this number")) stack_.push_back(found->second);
  }

  std::string_view code_, what_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  std::string problem_;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
  PickleValue nothing_;  // result of popping an empty stack, which ends the run
};

}  // namespace

Result<Pickle> read_pickle(std::span<const std::byte> data, std::string_view what) {
  const std::string_view code(reinterpret_cast<const char*>(data.data()),
                              std::min(data.size(), kPickleBytesMax));
  return Machine(code, what).run();
}

}  // namespace octavo
