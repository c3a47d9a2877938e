#include "fleet/simulate/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <cmath>
#include <sstream>

#include "fleet/simulate/charts.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;
using testing::Not;

// Returns the elements with this name. Requires that the SVG is valid XML.
std::vector<boost::property_tree::ptree> elements(const std::string& svg, const std::string& name) {
  std::istringstream in(svg);
  boost::property_tree::ptree tree;
  boost::property_tree::read_xml(in, tree);
  std::vector<boost::property_tree::ptree> found;
  for (const auto& [key, child] : tree.get_child("svg"))
    if (key == name) found.push_back(child);
  return found;
}

std::vector<std::pair<double, double>> points_of(const boost::property_tree::ptree& curve) {
  std::istringstream in(curve.get<std::string>("<xmlattr>.points"));
  std::vector<std::pair<double, double>> points;
  double x, y;
  char comma;
  while (in >> x >> comma >> y) points.emplace_back(x, y);
  return points;
}

TEST(SvgPlot, CurvesGoUpWhereValuesDo) {
  const Chart chart{"a <b> & c", "x", "y", false, {{"one", {{0, 0}, {5, 50}, {10, 100}}}}};
  const std::string svg = svg_plot("title", std::vector{chart});
  EXPECT_THAT(svg, HasSubstr("a &lt;b&gt; &amp; c"));
  const auto curves = elements(svg, "polyline");
  ASSERT_EQ(curves.size(), 1U);
  const auto points = points_of(curves[0]);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_LT(points[0].first, points[1].first);
  EXPECT_GT(points[0].second, points[1].second) << "y counts downward";
  EXPECT_NEAR(points[1].first * 2, points[0].first + points[2].first, 0.2);
}

TEST(SvgPlot, LogarithmicAxesLeaveOutWhatHasNoLogarithm) {
  const Chart chart{"", "", "", true, {{"one", {{0, 0}, {1, 1}, {10, 2}, {100, 3}}}}};
  const auto points = points_of(elements(svg_plot("", std::vector{chart}), "polyline")[0]);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_NEAR(points[1].first * 2, points[0].first + points[2].first, 0.2);
}

TEST(SvgPlot, LongCurvesAreThinnedOut) {
  Curve curve{"long", {}};
  for (int i = 0; i < 100'000; ++i) curve.points.emplace_back(i, std::sin(i));
  const Chart chart{"", "", "", false, {curve}};
  const auto points = points_of(elements(svg_plot("", std::vector{chart}), "polyline")[0]);
  EXPECT_LE(points.size(), 302U);
}

TEST(SvgPlot, HasChartsWithoutCurvesAndWithoutExtent) {
  const std::vector<Chart> charts{{"empty", "", "", true, {}}, {"point", "", "", false, {{"one", {{3, 0}}}}}};
  const std::string svg = svg_plot("", charts);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_EQ(elements(svg, "polyline").size(), 1U);
}

TEST(Charts, HaveACurveForEachResult) {
  SimulationResult result;
  result.answers = {
      {.completed = true, .first_us = 2'000'000}, {.completed = true, .first_us = 1'000'000}, {}};
  result.gaps.add(1000);
  result.gaps.add(3000);
  result.gaps.add(3000);
  result.samples = {{.time_us = 60'000'000, .running = 1, .waiting = 2},
                    {.time_us = 120'000'000, .prompt_tokens = 10, .cached_tokens = 5}};
  const auto all = charts(std::vector{NamedResult{"p", result}});
  ASSERT_EQ(all.size(), 4U);
  using Points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(all[0].curves[0].points, (Points{{1, 0.5}, {2, 1}}));
  EXPECT_EQ(all[1].curves[0].points, (Points{{1, 1.0 / 3}, {3, 1}}));
  EXPECT_EQ(all[2].curves[0].points, (Points{{0, 3}, {1, 0}}));
  EXPECT_EQ(all[3].curves[0].points, (Points{{0, 0}, {1, 0.5}}));
}

}  // namespace
}  // namespace octavo::fleet
