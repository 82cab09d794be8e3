#include "runnel/keras/plot_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>

#include "runnel/base/env.h"
#include "runnel/io/image.h"
#include "runnel/keras/keras.h"
#include "runnel/runnel.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"

namespace runnel::keras::utils {
namespace {

using test::expect_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

struct DrawnPoint {
  double x, y;
};
struct DrawnBox {
  double left, top, width, height;
  std::vector<std::string> lines;
  bool holds(DrawnPoint p, double slack) const {
    return p.x > left - slack && p.x < left + width + slack && p.y > top - slack && p.y < top + height + slack;
  }
};

std::vector<double> numbers_in(const std::string& text) {
  static const std::regex number("-?[0-9.]+");
  std::vector<double> all;
  for (std::sregex_iterator n(text.begin(), text.end(), number), end; n != end; ++n) all.push_back(std::stod(n->str()));
  return all;
}

// What a reader of the picture sees: boxes with text, and lines with a head.
struct SeenPicture {
  explicit SeenPicture(const std::string& svg) {
    const std::regex box(
        "<g class=\"layer\"><rect x=\"([^\"]*)\" y=\"([^\"]*)\" width=\"([^\"]*)\" height=\"([^\"]*)\"");
    const std::regex line("<text [^>]*>([^<]*)</text>");
    const std::regex arrow("<path class=\"arrow\" d=\"([^\"]*)\"[^>]*marker-end");
    const std::sregex_iterator end;
    for (std::sregex_iterator b(svg.begin(), svg.end(), box); b != end; ++b) {
      DrawnBox drawn{std::stod((*b)[1]), std::stod((*b)[2]), std::stod((*b)[3]), std::stod((*b)[4]), {}};
      const std::string inside = b->suffix().str().substr(0, b->suffix().str().find("</g>"));
      for (std::sregex_iterator l(inside.begin(), inside.end(), line); l != end; ++l) drawn.lines.push_back((*l)[1]);
      boxes.push_back(drawn);
    }
    for (std::sregex_iterator a(svg.begin(), svg.end(), arrow); a != end; ++a) arrows.push_back(points_along((*a)[1]));
    const std::vector<double> view = numbers_in(svg.substr(svg.find("viewBox"), 60));
    width = view[2];
    height = view[3];
  }

  // Points of a path of moves, lines and curves, curves in small steps.
  static std::vector<DrawnPoint> points_along(const std::string& path) {
    static const std::regex part("([MLC])([^MLC]*)");
    std::vector<DrawnPoint> points;
    for (std::sregex_iterator p(path.begin(), path.end(), part), end; p != end; ++p) {
      const std::vector<double> n = numbers_in((*p)[2]);
      if ((*p)[1] == "M") {
        points.push_back({n.at(0), n.at(1)});
        continue;
      }
      const DrawnPoint a = points.back();
      const bool curve = (*p)[1] == "C";
      const std::array<double, 4> xs{a.x, curve ? n.at(0) : a.x, curve ? n.at(2) : n.at(0), curve ? n.at(4) : n.at(0)};
      const std::array<double, 4> ys{a.y, curve ? n.at(1) : a.y, curve ? n.at(3) : n.at(1), curve ? n.at(5) : n.at(1)};
      for (int i = 1; i <= 20; ++i) {
        const double t = i / 20.0, s = 1 - t;
        const auto at = [&](const std::array<double, 4>& v) {
          return s * s * s * v[0] + 3 * s * s * t * v[1] + 3 * s * t * t * v[2] + t * t * t * v[3];
        };
        points.push_back({at(xs), at(ys)});
      }
    }
    return points;
  }

  // The text in the first line of the box at whose border a point lies.
  std::string box_at(DrawnPoint p) const {
    for (const DrawnBox& box : boxes) {
      if (box.holds(p, 0.2) && !box.holds(p, -0.2)) return box.lines[0];
    }
    return "nothing";
  }
  std::vector<std::string> connections() const {
    std::vector<std::string> all;
    for (const auto& points : arrows) all.push_back(box_at(points.front()) + " > " + box_at(points.back()));
    return all;
  }
  const DrawnBox& box(const std::string& name) const {
    const auto found = std::ranges::find_if(boxes, [&](const DrawnBox& b) { return b.lines[0] == name; });
    if (found == boxes.end()) throw std::out_of_range(name);
    return *found;
  }

  // Nothing lies on anything else or outside.
  void expect_tidy() const {
    for (const DrawnBox& a : boxes) {
      EXPECT_GE(std::min(a.left, a.top), 0) << a.lines[0];
      EXPECT_LE(a.left + a.width, width) << a.lines[0];
      EXPECT_LE(a.top + a.height, height) << a.lines[0];
      for (const DrawnBox& b : boxes) {
        const bool apart = a.left + a.width < b.left || b.left + b.width < a.left || a.top + a.height < b.top ||
                           b.top + b.height < a.top;
        EXPECT_TRUE(&a == &b || apart) << a.lines[0] << " on " << b.lines[0];
      }
      for (const auto& points : arrows) {
        for (const DrawnPoint& p : points) EXPECT_FALSE(a.holds(p, -0.2)) << "an arrow crosses " << a.lines[0];
      }
    }
    for (const auto& points : arrows) {
      for (const DrawnPoint& p : points) EXPECT_TRUE(p.x > 0 && p.x < width && p.y > 0 && p.y < height);
    }
  }

  std::vector<DrawnBox> boxes;
  std::vector<std::vector<DrawnPoint>> arrows;
  double width, height;
};

// Two inputs, a layer that both use, ways around the middle, and two outputs.
Model branched_model() {
  const Tensor a = Input({8}, {.name = "a"}), b = Input({8}, {.name = "b"});
  const auto shared = make<Dense>({.units = 8, .name = "shared"});
  const Tensor from_a = shared(a), from_b = shared(b);
  const Tensor joined = Concatenate({.name = "joined"})(std::vector<Tensor>{from_a, from_b});
  const Tensor wide = Dense({.units = 8, .activation = "relu", .name = "wide"})(joined);
  const Tensor deep = Dense({.units = 8, .name = "deep"})(wide);
  const Tensor sum = Add({.name = "sum"})(std::vector<Tensor>{deep, from_a, a});
  return Model(std::vector<Tensor>{a, b}, std::vector<Tensor>{Dense({.units = 1, .name = "score"})(sum), wide});
}

TEST(PlotModel, ASequentialModelIsAChain) {
  const Sequential model({Input({4, 2}, {.name = "in"}), Flatten({.name = "flat"}),
                          Dense({.units = 3, .name = "dense"}), Softmax({.name = "softmax"})});
  const SeenPicture seen(model_svg(model));
  ASSERT_EQ(seen.boxes.size(), 4U);
  EXPECT_THAT(seen.box("in").lines, ElementsAre("in", "InputLayer"));
  EXPECT_THAT(seen.box("flat").lines, ElementsAre("flat", "Flatten"));
  EXPECT_THAT(seen.connections(), UnorderedElementsAre("in > flat", "flat > dense", "dense > softmax"));
  seen.expect_tidy();
  for (const DrawnBox& box : seen.boxes) {  // one below the other
    EXPECT_NEAR(box.left + box.width / 2, seen.boxes[0].left + seen.boxes[0].width / 2, 0.2);
  }
  EXPECT_LT(seen.box("in").top, seen.box("flat").top);
  EXPECT_LT(seen.box("dense").top, seen.box("softmax").top);
}

TEST(PlotModel, WhatABoxTells) {
  const Model model = branched_model();
  const SeenPicture all(model_svg(model, {.show_shapes = true, .show_dtype = true}));
  EXPECT_THAT(all.box("joined").lines,
              ElementsAre("joined", "Concatenate", "float32", "input: [(None, 8), (None, 8)]", "output: (None, 16)"));
  EXPECT_THAT(all.box("shared").lines,
              ElementsAre("shared", "Dense", "float32", "input: (None, 8)", "output: (None, 8)"));
  EXPECT_THAT(all.box("a").lines, ElementsAre("a", "InputLayer", "float32", "input: (None, 8)", "output: (None, 8)"));
  all.expect_tidy();
  const SeenPicture classes(model_svg(model, {.show_layer_names = false}));
  EXPECT_THAT(classes.box("Concatenate").lines, ElementsAre("Concatenate"));
  EXPECT_EQ(classes.boxes.size(), all.boxes.size());
}

TEST(PlotModel, SharedLayersAndSeveralInputsAndOutputs) {
  const Model model = branched_model();
  for (const char* rankdir : {"TB", "LR"}) {
    SCOPED_TRACE(rankdir);
    const SeenPicture seen(model_svg(model, {.show_shapes = true, .rankdir = rankdir}));
    EXPECT_EQ(seen.boxes.size(), 8U);
    EXPECT_THAT(seen.connections(),
                UnorderedElementsAre("a > shared", "b > shared", "shared > joined", "joined > wide", "wide > deep",
                                     "deep > sum", "shared > sum", "a > sum", "sum > score"));
    seen.expect_tidy();
    for (const auto& points : seen.arrows) {  // all lead the same way
      const DrawnPoint from = points.front(), to = points.back();
      EXPECT_LT(rankdir[0] == 'T' ? from.y : from.x, rankdir[0] == 'T' ? to.y : to.x);
    }
  }
}

TEST(PlotModel, LayersThatFeedThemselvesAndCircles) {
  const Tensor in = Input({4}, {.name = "in"});
  const auto twice = make<Dense>({.units = 4, .name = "twice"});
  const auto other = make<Dense>({.units = 4, .name = "other"});
  const Model model(in, twice(other(twice(twice(in)))));
  for (const char* rankdir : {"TB", "LR"}) {
    const SeenPicture seen(model_svg(model, {.rankdir = rankdir}));
    EXPECT_THAT(seen.connections(),
                UnorderedElementsAre("in > twice", "twice > twice", "twice > other", "other > twice"));
    seen.expect_tidy();
  }
}

TEST(PlotModel, ShapesThatDifferFromCallToCall) {
  const auto relu = make<ReLU>({.name = "relu"});
  const Tensor a = Input({4}, {.name = "a"}), b = Input({5, 6}, {.name = "b"});
  const Model model(std::vector<Tensor>{a, b}, std::vector<Tensor>{relu(a), relu(b)});
  EXPECT_THAT(SeenPicture(model_svg(model, {.show_shapes = true})).box("relu").lines,
              ElementsAre("relu", "ReLU", "input: multiple", "output: multiple"));
}

TEST(PlotModel, APartOfAModelBeginsWhereItsInputsAre) {
  const Tensor in = Input({4}, {.name = "in"});
  const Tensor middle = Dense({.units = 3, .name = "first"})(in);
  const Model part(middle, Dense({.units = 2, .name = "second"})(middle));
  const SeenPicture seen(model_svg(part));
  EXPECT_THAT(seen.connections(), ElementsAre("first > second"));
  EXPECT_EQ(seen.boxes.size(), 2U);
}

TEST(PlotModel, ModelsWithoutConnectionsShowTheirLayersInOrder) {
  struct Own : Model {
    Dense first{this, "first", {.units = 3, .name = "one"}};
    Dense second{this, "second", {.units = 2, .name = "two"}};
    Tensor call(const Tensor& x, const CallArgs&) override { return second(first(x)); }
  };
  const SeenPicture own(model_svg(Own(), {.show_shapes = true}));
  EXPECT_THAT(own.connections(), IsEmpty());
  EXPECT_THAT(own.box("one").lines, ElementsAre("one", "Dense", "input: ?", "output: ?"));
  EXPECT_LT(own.box("one").top, own.box("two").top);
  own.expect_tidy();
  const Sequential unbuilt({Dense({.units = 3, .name = "one"}), Dense({.units = 2, .name = "two"})});
  EXPECT_THAT(SeenPicture(model_svg(unbuilt)).connections(), ElementsAre("one > two"));
}

// Long ways around deep parts: blocks with shortcuts, and one input for all of them.
TEST(PlotModel, ArrowsGoAroundTheBoxesOfADeepModel) {
  const Tensor in = Input({8}, {.name = "in"});
  Tensor x = in;
  for (int i = 0; i < 6; ++i) {
    Tensor y = Dense({.units = 8, .activation = "relu"})(x);
    for (int j = 0; j < i % 3; ++j) y = Dense({.units = 8})(y);
    const Tensor z = LayerNormalization()(x) * 2;
    x = Add()(std::vector<Tensor>{x, y, z, in});
  }
  const Model model(in, x);
  for (const char* rankdir : {"TB", "LR"}) {
    const SeenPicture seen(model_svg(model, {.show_shapes = true, .rankdir = rankdir}));
    EXPECT_EQ(seen.boxes.size(), model.layers().size());
    EXPECT_EQ(seen.arrows.size(), 47U);  // 7 of a block and its further layers; the first block has its input once
    for (const std::string& connection : seen.connections()) EXPECT_THAT(connection, Not(HasSubstr("nothing")));
    seen.expect_tidy();
  }
}

TEST(PlotModel, FurtherLinesAndWrappedLayers) {
  Sequential model({Input({5, 2}, {.name = "in"}),
                    Bidirectional({.layer = LSTM({.units = 3, .name = "memory"}), .name = "both"}),
                    Dense({.units = 3, .activation = "relu", .name = "dense", .trainable = false})});
  const SeenPicture seen(model_svg(model, {.show_layer_activations = true, .show_trainable = true}));
  EXPECT_THAT(seen.box("both(memory)").lines, ElementsAre("both(memory)", "Bidirectional(LSTM)", "trainable"));
  EXPECT_THAT(seen.box("dense").lines, ElementsAre("dense", "Dense", "relu", "not trainable"));
}

struct SeenPixels {
  explicit SeenPixels(const std::string& png) {
    size = io::decode_png(as_bytes(png), {.channels = 3}, [&](const io::ImageSize& s) -> void* {
      samples.resize(static_cast<size_t>(s.samples()));
      return samples.data();
    });
  }
  std::array<int, 3> at(int64_t x, int64_t y) const {
    const uint8_t* p = &samples.at(static_cast<size_t>((y * size.width + x) * 3));
    return {p[0], p[1], p[2]};
  }
  int64_t count(std::array<int, 3> color) const {
    int64_t n = 0;
    for (int64_t y = 0; y < size.height; ++y) {
      for (int64_t x = 0; x < size.width; ++x) n += at(x, y) == color;
    }
    return n;
  }
  io::ImageSize size;
  std::vector<uint8_t> samples;
};

TEST(PlotModel, PngShowsTheSameAsSvg) {
  const Model model = branched_model();
  constexpr std::array<int, 3> kInputFill{0xe3, 0xf1, 0xe3}, kLayerFill{0xf4, 0xf7, 0xfb}, kLine{0x5a, 0x6b, 0x7d};
  for (const char* rankdir : {"TB", "LR"}) {
    SCOPED_TRACE(rankdir);
    const SeenPixels once(model_png(model, {.show_shapes = true, .rankdir = rankdir}));
    EXPECT_EQ(once.at(0, 0), (std::array<int, 3>{255, 255, 255}));
    // Eight boxes of at least 60 x 40, two of them inputs; their text is drawn inside.
    EXPECT_GT(once.count(kInputFill), 2 * 60 * 40 / 2);
    EXPECT_GT(once.count(kLayerFill), 6 * 60 * 40 / 2);
    EXPECT_GT(once.count(kLine), 8 * 2 * (60 + 40));
    EXPECT_GT(once.count({0x33, 0x33, 0x33}), 100);
    const SeenPixels twice(model_png(model, {.show_shapes = true, .rankdir = rankdir, .dpi = 192}));
    EXPECT_NEAR(static_cast<double>(twice.size.width), 2.0 * static_cast<double>(once.size.width), 1);
    EXPECT_NEAR(static_cast<double>(twice.count(kLayerFill)), 4.0 * static_cast<double>(once.count(kLayerFill)),
                0.5 * static_cast<double>(once.count(kLayerFill)));
  }
  test::TempDir dir;
  plot_model(model, dir.file("m.png"));
  EXPECT_EQ(test::read_text(dir.file("m.png")), model_png(model));
}

TEST(PlotModel, FilesAndNames) {
  const Sequential model({Input({2}, {.name = "a<b>&\"c\""}), Dense({.units = 1, .name = "größe"})});
  test::TempDir dir;
  plot_model(model, dir.file("m.svg"), {.show_dtype = true});
  const std::string svg = test::read_text(dir.file("m.svg"));
  EXPECT_EQ(svg, model_svg(model, {.show_dtype = true}));
  EXPECT_THAT(svg, HasSubstr(">a&lt;b&gt;&amp;&quot;c&quot;</text>"));
  EXPECT_THAT(svg, HasSubstr(">größe</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b")));
}

TEST(PlotModel, Errors) {
  const Sequential model({Dense({.units = 1})});
  expect_error([&] { plot_model(model, "model.pdf"); }, Code::invalid_argument, "'model.pdf' must end in .png or .svg");
  expect_error([&] { model_png(model, {.dpi = 0}); }, Code::invalid_argument, "dpi must be");
  expect_error([&] { model_svg(model, {.rankdir = "RL"}); }, Code::invalid_argument, "rankdir must be TB");
  expect_error([] { model_svg(Sequential(), {}); }, Code::invalid_argument, "has no layers");
}

}  // namespace
}  // namespace runnel::keras::utils
