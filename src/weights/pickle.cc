#include "weights/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <span>
#include <unordered_map>

namespace octavo {
namespace {

using Kind = PickleValue::Kind;

// Interprets a pickle as CPython's unpickler does, with a stack, marks and a memo.
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
  struct Instruction {
    unsigned char opcode;
    void (*run)(Machine&);
  };
  void step(unsigned char opcode) {
    static const auto kByOpcode = [] {
      std::array<void (*)(Machine&), 256> table{};
      for (const Instruction& one : instructions()) table[one.opcode] = one.run;
      return table;
    }();
    if (kByOpcode[opcode] == nullptr) return refuse("unknown opcode {:#04x}", opcode);
    kByOpcode[opcode](*this);
  }
  static std::span<const Instruction> instructions();

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
  void push_real(std::uint64_t big_endian) {
    push({.kind = Kind::real, .real = std::bit_cast<double>(__builtin_bswap64(big_endian))});
  }
  // Pushes an integer that is stored in two's complement with as few bytes as possible.
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
  void push_tuple(std::size_t count) { push({.kind = Kind::sequence, .items = pop_many(count)}); }
  void push_call() {
    auto items = pop_many(2);
    if (check(items.size() == 2 && items[1]->is(Kind::sequence), "a call without arguments"))
      push({.kind = Kind::call, .items = std::move(items)});
  }
  void push_line_global() {
    const auto module = take_line(), name = take_line();
    push_global(module, name);
  }
  void push_stack_global() {
    const PickleValue& name = *pop();
    const PickleValue& module = *pop();
    if (check(name.is(Kind::text) && module.is(Kind::text), "a global without a name"))
      push_global(module.text, name.text);
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

  // Adds items to the value on top of the stack. The value may be the result of a call, such as an
  // OrderedDict.
  void add(Kind kind, std::vector<const PickleValue*> items) {
    PickleValue* top = pop();
    if (!check(top->is(kind) || (kind == Kind::dict && top->is(Kind::call)), "items of what cannot have any"))
      return;
    stack_.push_back(top);
    top->items.insert(top->items.end(), items.begin(), items.end());
  }

  void add_pairs() {
    auto items = pop_to_mark();
    if (check(items.size() % 2 == 0, "a key without a value")) add(Kind::dict, std::move(items));
  }

  void memorize(std::uint64_t index) {
    PickleValue* top = pop();
    if (!problem_.empty()) return;
    stack_.push_back(top);
    memo_[index] = top;
  }
  void recall(std::uint64_t index) {
    const auto found = memo_.find(index);
    if (check(found != memo_.end(), "nothing was kept under this number")) stack_.push_back(found->second);
  }

  std::string_view code_, what_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  std::string problem_;
  Pickle pickle_;
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;  // size of the stack at each mark
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
  PickleValue nothing_;  // popping an empty stack returns it and ends the run
};

std::span<const Machine::Instruction> Machine::instructions() {
  static constexpr Instruction kAll[] = {
      {0x80, [](Machine& m) { m.unsigned_of(1); }},  // PROTO
      {0x95, [](Machine& m) { m.unsigned_of(8); }},  // FRAME
      {'.', [](Machine& m) { m.stopped_ = m.check(!m.stack_.empty(), "an empty stack at the end"); }},
      {'(', [](Machine& m) { m.marks_.push_back(m.stack_.size()); }},
      {'0', [](Machine& m) { m.pop(); }},  // POP
      {'}', [](Machine& m) { m.push({.kind = Kind::dict}); }},
      {']', [](Machine& m) { m.push({.kind = Kind::sequence}); }},
      {')', [](Machine& m) { m.push({.kind = Kind::sequence}); }},
      {'t', [](Machine& m) { m.push({.kind = Kind::sequence, .items = m.pop_to_mark()}); }},  // TUPLE
      {'l', [](Machine& m) { m.push({.kind = Kind::sequence, .items = m.pop_to_mark()}); }},  // LIST
      {0x85, [](Machine& m) { m.push_tuple(1); }},                                            // TUPLE1
      {0x86, [](Machine& m) { m.push_tuple(2); }},
      {0x87, [](Machine& m) { m.push_tuple(3); }},
      {'N', [](Machine& m) { m.push({}); }},
      {0x88, [](Machine& m) { m.push_integer(1); }},  // NEWTRUE
      {0x89, [](Machine& m) { m.push_integer(0); }},
      {'K', [](Machine& m) { m.push_integer(static_cast<std::int64_t>(m.unsigned_of(1))); }},
      {'M', [](Machine& m) { m.push_integer(static_cast<std::int64_t>(m.unsigned_of(2))); }},
      {'J', [](Machine& m) { m.push_integer(static_cast<std::int32_t>(m.unsigned_of(4))); }},
      {0x8a, [](Machine& m) { m.push_long(m.unsigned_of(1)); }},  // LONG1
      {'G', [](Machine& m) { m.push_real(m.unsigned_of(8)); }},
      {'U', [](Machine& m) { m.push_text(m.unsigned_of(1)); }},   // SHORT_BINSTRING, of Python 2
      {0x8c, [](Machine& m) { m.push_text(m.unsigned_of(1)); }},  // SHORT_BINUNICODE
      {'T', [](Machine& m) { m.push_text(m.unsigned_of(4)); }},   // BINSTRING
      {'X', [](Machine& m) { m.push_text(m.unsigned_of(4)); }},   // BINUNICODE
      {0x8d, [](Machine& m) { m.push_text(m.unsigned_of(8)); }},  // BINUNICODE8
      {'c', [](Machine& m) { m.push_line_global(); }},            // GLOBAL
      {0x93, [](Machine& m) { m.push_stack_global(); }},          // STACK_GLOBAL
      {'q', [](Machine& m) { m.memorize(m.unsigned_of(1)); }},
      {'r', [](Machine& m) { m.memorize(m.unsigned_of(4)); }},
      {0x94, [](Machine& m) { m.memorize(m.memo_.size()); }},  // MEMOIZE
      {'h', [](Machine& m) { m.recall(m.unsigned_of(1)); }},
      {'j', [](Machine& m) { m.recall(m.unsigned_of(4)); }},
      {'Q', [](Machine& m) { m.push({.kind = Kind::persistent, .items = m.pop_many(1)}); }},  // BINPERSID
      {'R', [](Machine& m) { m.push_call(); }},                                               // REDUCE
      {0x81, [](Machine& m) { m.push_call(); }},                                              // NEWOBJ
      {'b', [](Machine& m) { m.pop(); }},  // BUILD: drops an object's state; its items were already added
      {'a', [](Machine& m) { m.add(Kind::sequence, m.pop_many(1)); }},
      {'e', [](Machine& m) { m.add(Kind::sequence, m.pop_to_mark()); }},
      {'s', [](Machine& m) { m.add(Kind::dict, m.pop_many(2)); }},
      {'u', [](Machine& m) { m.add_pairs(); }},
  };
  return kAll;
}

}  // namespace

Result<Pickle> read_pickle(std::span<const std::byte> data, std::string_view what) {
  const std::string_view code(reinterpret_cast<const char*>(data.data()),
                              std::min(data.size(), kPickleBytesMax));
  return Machine(code, what).run();
}

}  // namespace octavo
