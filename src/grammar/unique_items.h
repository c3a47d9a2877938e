// The items of arrays that must differ (uniqueItems), which no context-free grammar knows: the text of such arrays is
// followed beside the parser, and an item may not end where it would be one that its array has.
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
  // Whether the text is inside such an array, and there inside a string.
  bool active() const { return !now_.frames.empty(); }
  bool in_string() const { return now_.in_string; }

  // Takes the bytes of a token. Returns false and changes nothing if an item repeats in its array, or the
  // items exceed kUniqueBytesMax. opens(i): whether bytes[i], a '[', begins an array with unique items.
  template <class Opens>
  bool take(std::string_view bytes, Opens&& opens) {
    Place next = now_;
    if (!follow(next, bytes, opens)) return false;
    for (std::string& item : next.ended) {
      bytes_ += item.size();
      seen_.insert(std::move(item));
    }
    next.ended.clear();
    now_ = std::move(next);
    return true;
  }
  // Whether take() would take them.
  template <class Opens>
  bool fits(std::string_view bytes, Opens&& opens) const {
    Place next = now_;
    return follow(next, bytes, opens);
  }
  // Whether the text after the bytes is inside a string item that would equal another item of its array if it
  // ended there.
  template <class Opens>
  bool repeats(std::string_view bytes, Opens&& opens) const {
    Place next = now_;
    return follow(next, bytes, opens) && repeats(next);
  }
  // Bytes that complete the string item under way to an item of its array, without the closing quote.
  std::vector<std::string> rests() const;

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  struct Frame {  // an array or object that is open
    bool unique = false;
    std::uint32_t number = 0;  // of arrays whose items must differ
    std::size_t item = kNone;  // start of the current item in `text`
  };
  struct Place {
    std::vector<Frame> frames;        // the outermost one is an array whose items must differ
    std::string text;                 // text of the current item
    std::vector<std::string> ended;   // keys of items, not in seen_ yet
    std::uint32_t arrays = 0;
    bool in_string = false, escaped = false;
  };

  template <class Opens>
  bool follow(Place& place, std::string_view bytes, Opens& opens) const {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const bool opening = bytes[i] == '[' && !place.in_string && opens(i);
      if (!step(place, bytes[i], opening)) return false;
    }
    return true;
  }
  bool step(Place& place, char byte, bool opens) const;
  bool end_item(Place& place, std::size_t end) const;
  bool close(Place& place) const;
  bool is_new(const Place& place, const std::string& key) const;
  bool repeats(const Place& place) const;

  Place now_;
  std::unordered_set<std::string> seen_;  // array's number and canonical text
  std::size_t bytes_ = 0;
};

// Equal for JSON texts of equal values.
std::string canonical_json(std::string_view text);

}  // namespace octavo::grammar
