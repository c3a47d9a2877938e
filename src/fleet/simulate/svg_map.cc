#include "fleet/simulate/svg_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "base/check.h"

namespace octavo::fleet {
namespace {

// pixels
constexpr double kCellWidth = 118, kCellHeight = 64, kLeft = 84, kTop = 44, kBelow = 52, kRight = 20;
constexpr int kLine = 15;

struct Colour {
  int red, green, blue;
};
constexpr Colour kMore{0x0b, 0x62, 0xc4}, kLess{0xd6, 0x50, 0x0a}, kNone{0xdd, 0xdd, 0xdd};

// Returns a colour between white and blue (factor above 1) or orange (below 1), or grey for the factor 0.
Colour colour_of(double factor) {
  if (!(factor > 0)) return kNone;
  const double strength = std::min(std::abs(std::log2(factor)), 1.0);
  const Colour& full = factor > 1 ? kMore : kLess;
  const auto mixed = [&](int part) {
    return static_cast<int>(std::lround(255 + (part - 255) * strength * 0.8));
  };
  return {mixed(full.red), mixed(full.green), mixed(full.blue)};
}

void put_text(std::string& out, double x, double y, std::string_view more, std::string_view text) {
  fmt::format_to(std::back_inserter(out),
                 "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\"{}>{}</text>\n", x, y, more, text);
}

}  // namespace

std::string svg_map(const ColourMap& map) {
  CHECK(map.cells.size() == map.x.size() * map.y.size());
  const double wide = kCellWidth * static_cast<double>(map.x.size());
  const double high = kCellHeight * static_cast<double>(map.y.size());
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kLeft + wide + kRight, kTop + high + kBelow);
  put_text(out, kLeft + wide / 2, 24, " font-size=\"14\"", map.title);
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    const ColourMap::Cell& cell = map.cells[i];
    const double x = kLeft + kCellWidth * static_cast<double>(i % map.x.size());
    const double y = kTop + high - kCellHeight * static_cast<double>(i / map.x.size() + 1);
    const Colour c = colour_of(cell.factor);
    fmt::format_to(
        std::back_inserter(out),
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#{:02x}{:02x}{:02x}\" "
        "stroke=\"#999\"/>\n",
        x, y, kCellWidth, kCellHeight, c.red, c.green, c.blue);
    double line = y + kCellHeight / 2 + 4 - kLine * (static_cast<double>(cell.lines.size()) - 1) / 2;
    for (const std::string& text : cell.lines) {
      put_text(out, x + kCellWidth / 2, line, "", text);
      line += kLine;
    }
  }
  for (std::size_t i = 0; i < map.x.size(); ++i)
    put_text(out, kLeft + kCellWidth * (static_cast<double>(i) + 0.5), kTop + high + 18, "", map.x[i]);
  for (std::size_t i = 0; i < map.y.size(); ++i)
    put_text(out, kLeft - 28, kTop + high - kCellHeight * (static_cast<double>(i) + 0.5) + 4, "", map.y[i]);
  put_text(out, kLeft + wide / 2, kTop + high + 40, "", map.x_label);
  put_text(out, 16, kTop + high / 2, fmt::format(" transform=\"rotate(-90 16 {:.0f})\"", kTop + high / 2),
           map.y_label);
  return out + "</svg>\n";
}

}  // namespace octavo::fleet
