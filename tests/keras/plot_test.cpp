#include "runnel/keras/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "runnel/keras/layers/dense.h"
#include "runnel/keras/sequential.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::keras::utils {
namespace {

using test::expect_error;
using ::testing::HasSubstr;
using ::testing::Not;

size_t occurrences(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// The x and y of every point of the lines of one colour.
std::vector<std::pair<double, double>> path_points(const std::string& svg, const std::string& colour) {
  std::vector<std::pair<double, double>> points;
  const std::regex path("<path d=\"([^\"]*)\" fill=\"none\" stroke=\"" + colour + "\"");
  const std::regex point("[ML]([-0-9.]+) ([-0-9.]+)");
  for (std::sregex_iterator p(svg.begin(), svg.end(), path), end; p != end; ++p) {
    const std::string d = (*p)[1];
    for (std::sregex_iterator q(d.begin(), d.end(), point); q != end; ++q) {
      points.emplace_back(std::stod((*q)[1]), std::stod((*q)[2]));
    }
  }
  return points;
}

TEST(PlotHistory, OnePanelPerMetricOneLinePerEntry) {
  const std::string svg =
      history_svg({{"loss", {1, 0.5, 0.25}}, {"val_loss", {1.2, 0.7, 0.6}}, {"accuracy", {0.5, 0.8, 0.9}}});
  EXPECT_EQ(occurrences(svg, "<path "), 3U);
  EXPECT_EQ(occurrences(svg, ">epoch</text>"), 2U);
  EXPECT_THAT(svg, HasSubstr("width=\"640\" height=\"640\""));
  for (const char* name : {">loss<", ">val_loss<", ">accuracy<", ">3<"}) EXPECT_THAT(svg, HasSubstr(name));
  EXPECT_LT(svg.find(">loss<"), svg.find(">accuracy<"));  // the loss comes first
}

TEST(PlotHistory, PointsStandWhereTheirValuesAre) {
  const std::string svg = history_svg({{"loss", {0, 1, 4}}}, {4, 5, 6});
  const auto points = path_points(svg, "#1f5fa8");
  ASSERT_EQ(points.size(), 3U);
  EXPECT_DOUBLE_EQ(points[1].first - points[0].first, points[2].first - points[1].first);
  EXPECT_NEAR((points[0].second - points[1].second) * 4, points[0].second - points[2].second, 0.5);
  EXPECT_GT(points[0].second, points[2].second);  // y grows downwards
  for (const char* tick : {">5<", ">6<", ">7<"}) EXPECT_THAT(svg, HasSubstr(tick));
  EXPECT_THAT(svg, Not(HasSubstr(">8<")));
}

TEST(PlotHistory, ValuesThatAreNoNumbersLeaveGaps) {
  const std::string svg = history_svg({{"loss", {1, NAN, 3, 2}}});
  EXPECT_EQ(path_points(svg, "#1f5fa8").size(), 3U);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(history_svg({{"loss", {NAN, INFINITY}}}), Not(HasSubstr("nan")));
}

TEST(PlotHistory, OneEpochAndEqualValues) {
  for (const std::vector<double>& values : {std::vector<double>{0.5}, {2, 2, 2}, {0, 0}, {1e-9, 2e-9}, {1e9, 3e9}}) {
    const std::string svg = history_svg({{"loss", values}});
    EXPECT_EQ(path_points(svg, "#1f5fa8").size(), values.size());
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

TEST(PlotHistory, NamesAreEscapedAndChosen) {
  const std::string svg =
      history_svg({{"a<b&c", {1, 2}}, {"loss", {1, 2}}}, {}, {.metrics = {"a<b&c"}, .title = "x>y"});
  EXPECT_THAT(svg, HasSubstr("a&lt;b&amp;c"));
  EXPECT_THAT(svg, HasSubstr(">x&gt;y<"));
  EXPECT_THAT(svg, Not(HasSubstr("loss")));
}

TEST(PlotHistory, WritesFilesOfWhatFitReturns) {
  Sequential model({Dense({.units = 1})});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x{{1.f}, {2.f}};
  const History history =
      model.fit(x, x, {.epochs = 4, .verbose = 0, .validation_data = SampleData(x, x), .initial_epoch = 1});
  EXPECT_EQ(history.epoch, (std::vector<int64_t>{1, 2, 3}));
  test::TempDir dir;
  plot_history(history, dir.file("h.svg"));
  const std::string svg = test::read_text(dir.file("h.svg"));
  EXPECT_EQ(svg, history_svg(history.history, history.epoch));
  EXPECT_EQ(path_points(svg, "#1f5fa8").size(), 3U);
  EXPECT_EQ(path_points(svg, "#d1621b").size(), 3U);
}

TEST(PlotHistory, Errors) {
  expect_error([] { history_svg({}); }, Code::invalid_argument, "the history is empty");
  expect_error(
      [] {
        history_svg({{"loss", {1, 2}}}, {0});
      },
      Code::invalid_argument, "'loss' has 2 values for 1 epochs");
  expect_error(
      [] {
        history_svg({{"loss", {1, 2}}}, {}, {.metrics = {"auc"}});
      },
      Code::invalid_argument, "no metric 'auc'; there are: loss");
  expect_error([] { history_svg({{"loss", {1, 2}}}, {}, {.width = 20}); }, Code::invalid_argument, "too small");
}

}  // namespace
}  // namespace runnel::keras::utils
