// Fuzzer: passes arbitrary ids to the detokenizer, and its text to the stop splitter. The pieces must be
// valid UTF-8 and together equal the decoded ids. The text after the splitter must end at the first stop
// string, however the text is divided.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/fixtures.h"
#include "text/stop_strings.h"
#include "text/utf8.h"

namespace {

using namespace octavo;

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  std::uint32_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> loaded;
    for (const std::string& name : fixtures::kTokenizers) loaded.push_back(fixtures::tokenizer(name));
    return loaded;
  }();
  return all;
}

// Returns the text up to the first complete stop string, computed directly.
std::string cut(const std::string& text, const std::vector<std::string>& stops, bool include) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, include ? end : end - longest);
  }
  return text;
}

void check_stops(const std::string& text, const std::vector<std::string>& pieces, Input& input) {
  std::vector<std::string> stops;
  for (std::uint32_t count = input.byte() % 4; count > 0 && !text.empty(); --count) {
    const std::size_t at = input.byte() % text.size();
    stops.push_back(text.substr(at, input.byte() % 8 + 1));
    if (input.byte() % 4 == 0) stops.back() += 'x';
  }
  const bool include = input.byte() % 2 == 0;
  StopSplitter splitter = StopSplitter::create(stops, include).value();
  std::string sent;
  for (const std::string& piece : pieces) sent += splitter.push(piece).text;
  sent += splitter.finish();
  CHECK(sent == cut(text, stops, include), "sent: {} of: {}", sent, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  const Tokenizer& tokenizer = tokenizers()[input.byte() % tokenizers().size()];
  const bool skip_special_tokens = input.byte() % 2 == 0;
  std::vector<std::int32_t> ids(input.byte() % 64);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(input.byte() << 8 | input.byte()) % 1024;

  Detokenizer detokenizer(tokenizer, skip_special_tokens);
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) pieces.push_back(detokenizer.push(id));
  pieces.push_back(detokenizer.finish());
  std::string text;
  for (const std::string& piece : pieces) {
    CHECK(!invalid_utf8_at(piece), "a piece that is not UTF-8: {}", piece);
    text += piece;
  }
  CHECK(text == tokenizer.decode(ids, skip_special_tokens).value(), "{}", text);
  check_stops(text, pieces, input);
  return 0;
}
