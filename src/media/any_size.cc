#include "media/any_size.h"

#include <algorithm>
#include <cmath>

namespace octavo::media {

namespace {

// Sides are at most 2^16 pixels, so a product of two fits.
void grow(int& width, int& height, const AnySizeRule& rule) {
  const int unit = rule.unit;
  const double w = width, h = height;
  if (rule.growth == AnySizeRule::Growth::both && std::min(width, height) < unit) {
    const double scale = std::max(unit / h, unit / w);
    height = static_cast<int>(h * scale);
    width = static_cast<int>(w * scale);
  }
  if (rule.growth != AnySizeRule::Growth::in_turn) return;
  if (height < unit) {
    width = static_cast<int>(std::nearbyint(w * unit / h));
    height = unit;
  }
  if (width < unit) {
    height = static_cast<int>(std::nearbyint(static_cast<double>(height) * unit / width));
    width = unit;
  }
}

}  // namespace

Result<PartGrid> any_size_grid(int width, int height, const AnySizeRule& rule) {
  TRY_VOID(check_ratio(width, height));
  grow(width, height, rule);
  const double unit = rule.unit;
  const auto in_units = [unit](double units) {
    return static_cast<std::int64_t>(units) * static_cast<std::int64_t>(unit);
  };
  // Halves are rounded to even numbers, as in Python.
  std::int64_t rounded_width = in_units(std::nearbyint(width / unit));
  std::int64_t rounded_height = in_units(std::nearbyint(height / unit));
  if (rule.growth == AnySizeRule::Growth::rounded) {
    rounded_width = std::max<std::int64_t>(rule.unit, rounded_width);
    rounded_height = std::max<std::int64_t>(rule.unit, rounded_height);
  }
  const double pixels = static_cast<double>(width) * height * rule.weight;
  const std::int64_t rounded = rounded_width * rounded_height * rule.rounded_weight;
  if (rounded > rule.pixels_max) {
    const double shrink = std::sqrt(pixels / static_cast<double>(rule.pixels_max));
    rounded_width = in_units(std::max(1.0, std::floor(width / shrink / unit)));
    rounded_height = in_units(std::max(1.0, std::floor(height / shrink / unit)));
  } else if (rounded < rule.pixels_min) {
    const double grow = std::sqrt(static_cast<double>(rule.pixels_min) / pixels);
    rounded_width = in_units(std::ceil(width * grow / unit));
    rounded_height = in_units(std::ceil(height * grow / unit));
  }
  return PartGrid{.width = static_cast<int>(rounded_width), .height = static_cast<int>(rounded_height)};
}

}  // namespace octavo::media
