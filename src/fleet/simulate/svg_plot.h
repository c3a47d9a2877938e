// Draws line charts as SVG: several charts in one picture, with a common legend.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace octavo::fleet {

struct Curve {
  std::string name;  // curves of this name share a colour and an entry in the legend
  std::vector<std::pair<double, double>> points;  // sorted by x
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;  // omits points with x <= 0
  std::vector<Curve> curves;
};

// Draws two charts per row. Omits points of long curves that are not visible.
std::string svg_plot(const std::string& title, std::span<const Chart> charts);

}  // namespace octavo::fleet
