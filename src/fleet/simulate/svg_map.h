// A table of coloured cells as SVG, for reports.
#pragma once

#include <string>
#include <vector>

namespace octavo::fleet {

struct ColourMap {
  struct Cell {
    double factor = 1;  // 2 and more: wholly blue; 1: white; a half and less: wholly orange. 0: grey
    std::vector<std::string> lines = {};  // in the cell
  };
  std::string title;
  std::string x_label, y_label;
  std::vector<std::string> x, y;  // of columns, of rows from below
  std::vector<Cell> cells;        // row by row
};

std::string svg_map(const ColourMap& map);

}  // namespace octavo::fleet
