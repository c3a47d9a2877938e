// Line charts as SVG, for reports: axes with round numbers, a legend, several charts in one picture.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace octavo::fleet {

struct Curve {
  std::string name;  // equal names of several charts have the same colour and one entry in the legend
  std::vector<std::pair<double, double>> points;  // x ascending
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;  // points with x <= 0 are left out
  std::vector<Curve> curves;
};

// Two charts per row. Long curves are thinned out to the visible points.
std::string svg_plot(const std::string& title, std::span<const Chart> charts);

}  // namespace octavo::fleet
