#include "serve/text_chunks.h"

#include <algorithm>
#include <utility>

namespace octavo {

void TextChunks::add(Tokenizer::Texts text, std::size_t most) {
  std::vector<int>& own = lengths.emplace_back();
  if (text.ids.size() <= most) {
    own.push_back(static_cast<int>(text.ids.size()));
    chunks.push_back(std::move(text));
    return;
  }
  for (std::size_t at = 0; at < text.ids.size(); at += most) {
    const auto begin = text.ids.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = static_cast<std::ptrdiff_t>(std::min(most, text.ids.size() - at));
    chunks.push_back({.ids = {begin, begin + count}, .second = std::nullopt});
    own.push_back(static_cast<int>(count));
  }
}

std::vector<float> mean_of_chunks(std::span<const std::vector<float>> vectors, std::span<const int> lengths) {
  std::vector<double> sum(vectors.front().size(), 0);
  double tokens = 0;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    tokens += lengths[i];
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += double{vectors[i][k]} * lengths[i];
  }
  std::vector<float> mean(sum.size());
  std::ranges::transform(sum, mean.begin(), [tokens](double x) { return static_cast<float>(x / tokens); });
  return mean;
}

}  // namespace octavo
