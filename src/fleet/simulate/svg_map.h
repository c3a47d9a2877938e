// Draws a table of coloured cells as SVG. Used for the map of `octavo plan`.
#pragma once

#include <string>
#include <vector>

namespace octavo::fleet {

struct ColourMap {
  struct Cell {
    double factor = 1;                    // 2 and above: blue; 1: white; 0.5 and below: orange; 0: grey
    std::vector<std::string> lines = {};
  };
  std::string title;
  std::string x_label, y_label;
  std::vector<std::string> x, y;  // labels of the columns (left to right) and the rows (bottom to top)
  std::vector<Cell> cells;        // row by row
};

std::string svg_map(const ColourMap& map);

}  // namespace octavo::fleet
