// Enforces uniqueItems, which a context-free grammar cannot do. In parallel with the parser, this class reads
// the arrays with unique items. An item may not end if it would equal an earlier item of its array.
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

  // Appends the bytes of a token. Returns false and changes nothing if an item is repeated or the items
  // exceed kUniqueBytesMax. opens(i): returns whether bytes[i], a '[', begins an array with unique items.
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
  // Returns true if the bytes end inside a string that would be a repeated item if it ended there.
  template <class Opens>
  bool repeats(std::string_view bytes, Opens&& opens) const {
    Position next = now_;
    return follow(next, bytes, opens) && repeats(next);
  }
  // Returns the rest of each earlier item that begins like the current string, without the closing quote.
  std::vector<std::string> rests() const;

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  struct Frame {  // an array or object that has not ended
    bool unique = false;
    // 1, 2, ... for the arrays with unique items; 0: not such an array
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
  // the complete items; an entry is Frame::number and the item's canonical text
  std::unordered_set<std::string> seen_;
  std::size_t bytes_ = 0;
};

// Returns a canonical text: two JSON texts have the same one if their values are equal.
std::string canonical_json(std::string_view text);

}  // namespace octavo::grammar
