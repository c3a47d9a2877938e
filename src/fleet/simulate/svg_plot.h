// Draws several line charts in one SVG picture, with a common legend.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace octavo::fleet {

struct Curve {
  std::string name;  // curves with the same name have the same colour and one entry in the legend
  std::vector<std::pair<double, double>> points;  // sorted by x
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  std::vector<Curve> curves;
};

// Draws two charts per row. Thins out the points of long curves.
std::string svg_plot(const std::string& title, std::span<const Chart> charts);

}  // namespace octavo::fleet
