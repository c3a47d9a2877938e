#include "fleet/simulate/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace octavo::fleet {
namespace {

// pixels
constexpr double kChartWidth = 460, kChartHeight = 300, kTop = 64;
constexpr double kLeft = 62, kRight = 18, kAbove = 30, kBelow = 48;
constexpr std::size_t kPointsMax = 300;
constexpr const char* kColours[] = {"#0b62c4", "#d6500a", "#1a8a3a", "#8a3ab9", "#b8860b", "#c2185b"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

struct Axis {
  double low = 0, high = 1;  // range of values or, if `log` is set, of their logarithms
  bool log = false;
  double begin = 0, end = 1;  // pixels

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double place(double value) const {
    return begin + ((log ? std::log10(value) : value) - low) / (high - low) * (end - begin);
  }

  // Returns the values with a tick: powers of ten, or 1, 2 and 5 times a power of ten.
  std::vector<double> ticks() const {
    std::vector<double> values;
    if (log) {
      for (double power = std::ceil(low); power <= high + 1e-9; ++power)
        values.push_back(std::pow(10, power));
      return values;
    }
    const double rough = (high - low) / 5, unit = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough <= unit       ? unit
                        : rough <= 2 * unit ? 2 * unit
                        : rough <= 5 * unit ? 5 * unit
                                            : 10 * unit;
    for (double i = std::ceil(low / step); i * step <= high + step * 1e-9; ++i) values.push_back(i * step);
    return values;
  }
};

// Returns the axis for all points of a chart. The y axis begins at 0.
Axis axis_over(const Chart& chart, bool x) {
  Axis axis{.log = x && chart.log_x};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Curve& curve : chart.curves)
    for (const auto& point : curve.points) {
      const double value = x ? point.first : point.second;
      if (!axis.shows(value)) continue;
      low = std::min(low, axis.log ? std::log10(value) : value);
      high = std::max(high, axis.log ? std::log10(value) : value);
    }
  if (!(low <= high)) return axis;
  axis.low = x ? low : std::min(low, 0.0);
  axis.high = high > axis.low ? high : axis.low + 1;
  return axis;
}

void put_text(std::string& out, double x, double y, std::string_view anchor, std::string_view text,
              std::string_view more = "") {
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, more,
                     escaped(text));
}

void put_line(std::string& out, double x1, double y1, double x2, double y2, std::string_view colour) {
  out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1,
                     y1, x2, y2, colour);
}

void put_curve(std::string& out, const Curve& curve, const Axis& x, const Axis& y, std::string_view colour) {
  std::string path;
  const std::size_t step = std::max<std::size_t>(1, (curve.points.size() + kPointsMax - 1) / kPointsMax);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const bool last = i + 1 == curve.points.size();
    if (i % step != 0 && !last) continue;
    const auto& [at_x, at_y] = curve.points[i];
    if (x.shows(at_x) && y.shows(at_y)) path += fmt::format("{:.1f},{:.1f} ", x.place(at_x), y.place(at_y));
  }
  out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", path,
                     colour);
}

// Returns the names of all curves in the order of their first use. The index of a name selects the colour.
std::vector<std::string> names_of(std::span<const Chart> charts) {
  std::vector<std::string> names;
  for (const Chart& chart : charts)
    for (const Curve& curve : chart.curves)
      if (std::ranges::find(names, curve.name) == names.end()) names.push_back(curve.name);
  return names;
}

const char* colour_of(const std::vector<std::string>& names, const std::string& name) {
  const auto place = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  return kColours[place % std::size(kColours)];
}

void put_chart(std::string& out, const Chart& chart, double left, double top,
               const std::vector<std::string>& names) {
  Axis x = axis_over(chart, true), y = axis_over(chart, false);
  x.begin = left + kLeft, x.end = left + kChartWidth - kRight;
  y.begin = top + kChartHeight - kBelow, y.end = top + kAbove;
  put_text(out, (x.begin + x.end) / 2, top + 18, "middle", chart.title, " font-weight=\"bold\"");
  for (const double tick : x.ticks()) {
    put_line(out, x.place(tick), y.begin, x.place(tick), y.end, "#e4e4e4");
    put_text(out, x.place(tick), y.begin + 16, "middle", fmt::format("{:g}", tick));
  }
  for (const double tick : y.ticks()) {
    put_line(out, x.begin, y.place(tick), x.end, y.place(tick), "#e4e4e4");
    put_text(out, x.begin - 6, y.place(tick) + 4, "end", fmt::format("{:g}", tick));
  }
  put_line(out, x.begin, y.begin, x.end, y.begin, "#404040");
  put_line(out, x.begin, y.begin, x.begin, y.end, "#404040");
  put_text(out, (x.begin + x.end) / 2, y.begin + 36, "middle", chart.x_label);
  const double middle = (y.begin + y.end) / 2;
  put_text(out, left + 14, middle, "middle", chart.y_label,
           fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", left + 14, middle));
  for (const Curve& curve : chart.curves) put_curve(out, curve, x, y, colour_of(names, curve.name));
}

}  // namespace

std::string svg_plot(const std::string& title, std::span<const Chart> charts) {
  const std::size_t columns = std::min<std::size_t>(2, std::max<std::size_t>(1, charts.size()));
  const std::size_t rows = (charts.size() + columns - 1) / columns;
  const double width = kChartWidth * static_cast<double>(columns);
  const double height = kTop + kChartHeight * static_cast<double>(rows);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#202020\">\n<rect width=\"{0}\" height=\"{1}\" "
      "fill=\"#ffffff\"/>\n",
      width, height);
  put_text(out, width / 2, 24, "middle", title, " font-size=\"15\"");
  const std::vector<std::string> names = names_of(charts);
  double at = 62;
  for (const std::string& name : names) {
    put_line(out, at, 44, at + 22, 44, colour_of(names, name));
    put_text(out, at + 28, 48, "start", name);
    at += 52 + 7.0 * static_cast<double>(name.size());
  }
  for (std::size_t i = 0; i < charts.size(); ++i)
    put_chart(out, charts[i], kChartWidth * static_cast<double>(i % columns),
              kTop + kChartHeight * static_cast<double>(i / columns), names);
  return out + "</svg>\n";
}

}  // namespace octavo::fleet
