// Enforces uniqueItems. A context-free grammar cannot do so; this class reads the arrays with unique items
// in parallel with the parser. An item may not end if it would equal an earlier item of its array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace octavo::grammar {

class UniqueItems {
 public:
  // active() returns true inside an array with unique items, in_string() if the text is also inside a
  // string.
  bool active() const { return !now_.frames.empty(); }
  bool in_string() const { return now_.in_string; }

  // Appends the bytes of a token. Returns false without a change if an item is repeated or the items exceed
  // kUniqueBytesMax. opens(i) tells whether bytes[i], a '[', begins an array with unique items.
  template <class Opens>
  bool take(std::string_view bytes, Opens&& opens) {
    Position next = now_;
    if (!follow(next, bytes, opens)) return false;
    for (std::string& item : next.ended) {
      bytes_ += item.size();
      seen_.insert(std::move(item));
    }
    next.ended.clear();
    now_ = std::move(next);
    return true;
  }
  // Returns what take() would return.
  template <class Opens>
  bool fits(std::string_view bytes, Opens&& opens) const {
    Position next = now_;
    return follow(next, bytes, opens);
  }
  // Returns true if the bytes end inside a string that would repeat an item if it ended there.
  template <class Opens>
  bool repeats(std::string_view bytes, Opens&& opens) const {
    Position next = now_;
    return follow(next, bytes, opens) && repeats(next);
  }
  // For each earlier item that begins like the current string, returns the missing bytes without the
  // closing quote.
  std::vector<std::string> rests() const;

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  struct Frame {  // an open array or object
    bool unique = false;
    // counts the arrays with unique items
    std::uint32_t number = 0;
    std::size_t item = kNone;
  };
  struct Position {
    // frames of nested arrays and objects; the first one is an array with unique items
    std::vector<Frame> frames;
    std::string text;
    std::vector<std::string> ended;  // items that are not in seen_ yet
    std::uint32_t arrays = 0;
    bool in_string = false, escaped = false;
  };

  template <class Opens>
  bool follow(Position& position, std::string_view bytes, Opens& opens) const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool opening = bytes[i] == '[' && !position.in_string && opens(i);
      if (!step(position, bytes[i], opening)) return false;
    }
    return true;
  }
  bool step(Position& position, char byte, bool opens) const;
  bool end_item(Position& position, std::size_t end) const;
  bool close(Position& position) const;
  bool is_new(const Position& position, const std::string& key) const;
  bool repeats(const Position& position) const;

  Position now_;
  // items so far: number of the array, then the canonical text of the item
  std::unordered_set<std::string> seen_;
  std::size_t bytes_ = 0;
};

// Returns the same text for all JSON texts of one value.
std::string canonical_json(std::string_view text);

}  // namespace octavo::grammar
