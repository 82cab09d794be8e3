// Boxes found in images: of those that lie over each other the best is kept.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "runnel/base/format.h"
#include "runnel/op/builder.h"
#include "runnel/op/composed.h"
#include "runnel/op/dispatch.h"
#include "runnel/ops/array.h"
#include "runnel/ops/image.h"

namespace runnel {
namespace {

inline constexpr Types<Half, float> box_types;

struct ThresholdAttrs {
  double iou_threshold = 0.5;
  static constexpr auto fields() { return field_list(field("iou_threshold", &ThresholdAttrs::iou_threshold)); }
};
struct PadAttrs {
  bool pad_to_max_output_size = false;
  static constexpr auto fields() {
    return field_list(field("pad_to_max_output_size", &PadAttrs::pad_to_max_output_size));
  }
};
struct CombinedAttrs {
  bool pad_per_class = false;
  bool clip_boxes = true;
  static constexpr auto fields() {
    return field_list(field("pad_per_class", &CombinedAttrs::pad_per_class),
                      field("clip_boxes", &CombinedAttrs::clip_boxes));
  }
};

struct FoundBox {
  float top, left, bottom, right;

  template <class T>
  static FoundBox at(const T* corners) {  // two corners that lie across from each other, in any order
    const auto v = [&](int i) { return static_cast<float>(corners[i]); };
    return {std::min(v(0), v(2)), std::min(v(1), v(3)), std::max(v(0), v(2)), std::max(v(1), v(3))};
  }
  float area() const { return (bottom - top) * (right - left); }
};

// The area that both share, over the area that they cover.
float overlap_of(const FoundBox& a, const FoundBox& b) {
  if (a.area() <= 0 || b.area() <= 0) return 0;
  const float height = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.f);
  const float width = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.f);
  const float shared = height * width;
  return shared / (a.area() + b.area() - shared);
}

struct Choice {
  int64_t most = 0;  // boxes
  float overlap = 0.5f;
  float score = std::numeric_limits<float>::lowest();
  float sigma = 0;           // above 0, scores fall with the overlap instead of a box being dropped
  bool keep_scores = false;  // also where the overlap is no number
};

struct Chosen {
  std::vector<int32_t> boxes;
  std::vector<float> scores;
};

// Takes the boxes by falling scores. A box that overlaps a better one too much is dropped or, with sigma, put back with
// a lower score. What is put back is above o.score, so that a score that is no number any more goes.
template <class Overlap>
Chosen choose_boxes(const std::vector<float>& scores, const Choice& o, Overlap overlap) {
  struct Candidate {
    int32_t box;
    float score;
    size_t compared;  // to how many chosen boxes
  };
  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  };
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(worse)> queue(worse);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > o.score) queue.push({static_cast<int32_t>(i), scores[i], 0});
  }
  const float scale = o.sigma > 0 ? -0.5f / o.sigma : 0.f;
  Chosen chosen;
  while (static_cast<int64_t>(chosen.boxes.size()) < o.most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const float before = next.score;
    bool dropped = false;
    for (size_t k = chosen.boxes.size(); k-- > next.compared && !dropped;) {
      const float shared = overlap(next.box, chosen.boxes[k]);
      if (!o.keep_scores) next.score *= o.sigma > 0 || shared <= o.overlap ? std::exp(scale * shared * shared) : 0.f;
      dropped = (o.sigma <= 0 && shared > o.overlap) || next.score <= o.score;
    }
    if (dropped) continue;
    next.compared = chosen.boxes.size();
    if (next.score == before) {
      chosen.boxes.push_back(next.box);
      chosen.scores.push_back(next.score);
    } else if (next.score > o.score) {
      queue.push(next);
    }
  }
  return chosen;
}

void check_choice(const Choice& o) {
  if (o.most < 0) throw invalid_argument("max_output_size must not be negative, got {}", o.most);
  if (!(o.overlap >= 0 && o.overlap <= 1)) {
    throw invalid_argument("iou_threshold must be between 0 and 1, got {}", o.overlap);
  }
  if (!(o.sigma >= 0)) throw invalid_argument("soft_nms_sigma must not be negative, got {}", o.sigma);
}

void check_boxes(InferContext& c) {
  c.require_rank(0, 2);
  c.require_rank(1, 1);
  for (int i = 2; i < c.num_inputs(); ++i) c.require_rank(i, 0);
  const PartialShape &boxes = c.input(0), &scores = c.input(1);
  if (boxes.has_rank() && boxes[1] >= 0 && boxes[1] != 4)
    throw invalid_argument("boxes must be [n, 4], got {}", boxes.str());
  if (boxes.has_rank() && scores.has_rank() && boxes[0] >= 0 && scores[0] >= 0 && boxes[0] != scores[0]) {
    throw invalid_argument("{} boxes, but {} scores", boxes[0], scores[0]);
  }
}

float scalar_at(KernelContext& c, int i) {
  const Tensor& t = c.in(i);
  return t.dtype() == DType::float16 ? static_cast<float>(*t.data<Half>()) : *t.data<float>();
}

template <class T>
Chosen chosen_of(KernelContext& c, const Choice& o) {
  check_choice(o);
  const int64_t n = c.in(1).num_elements();
  std::vector<FoundBox> boxes;
  std::vector<float> scores;
  for (int64_t i = 0; i < n; ++i) {
    boxes.push_back(FoundBox::at(c.in<T>(0) + 4 * i));
    scores.push_back(static_cast<float>(c.in<T>(1)[i]));
  }
  return choose_boxes(scores, o, [&](int32_t a, int32_t b) {
    return overlap_of(boxes[static_cast<size_t>(a)], boxes[static_cast<size_t>(b)]);
  });
}

template <class T>
Choice choice_of(KernelContext& c) {
  Choice o{.most = c.int_scalar(2), .score = static_cast<float>(std::numeric_limits<T>::lowest())};
  if (c.num_inputs() > 3) o.overlap = scalar_at(c, 3);
  if (c.num_inputs() > 4) o.score = scalar_at(c, 4);
  if (c.num_inputs() > 5) o.sigma = scalar_at(c, 5);
  return o;
}

// A vector of numbers, filled up with zeros to `size` where it is shorter.
template <class To, class From>
void give(KernelContext& c, int i, const std::vector<From>& values, int64_t size) {
  To* to = c.allocate(i, Shape{size}).template mutable_data<To>();
  for (int64_t k = 0; k < size; ++k) {
    to[k] = k < static_cast<int64_t>(values.size()) ? static_cast<To>(values[static_cast<size_t>(k)]) : To(0);
  }
}

void give_indices(KernelContext& c, const Chosen& chosen) {
  give<int32_t>(c, 0, chosen.boxes, static_cast<int64_t>(chosen.boxes.size()));
}

int64_t padded_size(const Chosen& chosen, bool pad, int64_t most) {
  return pad ? most : static_cast<int64_t>(chosen.boxes.size());
}

void combined(KernelContext& c, const CombinedAttrs& a) {
  const Shape &b = c.in(0).shape(), &s = c.in(1).shape();
  const int64_t batch = b[0], n = b[1], kinds = b[2], classes = s[2];
  Choice o{.most = c.int_scalar(2), .overlap = *c.in<float>(4), .score = *c.in<float>(5), .keep_scores = true};
  check_choice(o);
  if (o.most == 0) throw invalid_argument("max_output_size_per_class must be positive");
  const int64_t total = c.int_scalar(3);
  if (total <= 0) throw invalid_argument("max_total_size must be positive, got {}", total);
  int64_t places = total;
  if (a.pad_per_class) places = std::min(total, o.most * classes);
  float* boxes = c.allocate(0, Shape{batch, places, 4}).mutable_data<float>();
  float* scores = c.allocate(1, Shape{batch, places}).mutable_data<float>();
  float* names = c.allocate(2, Shape{batch, places}).mutable_data<float>();
  auto* valid = c.allocate(3, Shape{batch}).mutable_data<int32_t>();
  std::fill_n(boxes, batch * places * 4, 0.f);
  std::fill_n(scores, batch * places, 0.f);
  std::fill_n(names, batch * places, 0.f);
  struct Found {
    const float* corners;
    float score;
    int64_t name;
  };
  for (int64_t i = 0; i < batch; ++i) {
    std::vector<Found> found;
    for (int64_t k = 0; k < classes; ++k) {
      const auto corners = [&](int64_t box) {
        return c.in<float>(0) + ((i * n + box) * kinds + (kinds > 1 ? k : 0)) * 4;
      };
      std::vector<float> own;
      for (int64_t box = 0; box < n; ++box) own.push_back(c.in<float>(1)[(i * n + box) * classes + k]);
      const Chosen chosen = choose_boxes(
          own, o, [&](int32_t x, int32_t y) { return overlap_of(FoundBox::at(corners(x)), FoundBox::at(corners(y))); });
      for (size_t m = 0; m < chosen.boxes.size(); ++m) found.push_back({corners(chosen.boxes[m]), chosen.scores[m], k});
    }
    std::stable_sort(found.begin(), found.end(), [](const Found& x, const Found& y) { return x.score > y.score; });
    const int64_t kept = std::min(places, static_cast<int64_t>(found.size()));
    for (int64_t m = 0; m < kept; ++m) {
      const Found& f = found[static_cast<size_t>(m)];
      for (int d = 0; d < 4; ++d) {
        boxes[(i * places + m) * 4 + d] = a.clip_boxes ? std::clamp(f.corners[d], 0.f, 1.f) : f.corners[d];
      }
      scores[i * places + m] = f.score;
      names[i * places + m] = static_cast<float>(f.name);
    }
    valid[i] = static_cast<int32_t>(kept);
  }
}

constexpr auto indices_shape = [](InferContext& c) {
  check_boxes(c);
  c.output(PartialShape{kUnknownDim});
};

// Boxes to choose among, how many, and from which overlap on one is left out.
template <class Builder>
auto with_boxes(Builder op) {
  return op.in("boxes", box_types, DType::float32)
      .in("scores")
      .in_host("max_output_size", DType::int32)
      .type("T_threshold", box_types, DType::float32)
      .in("iou_threshold", "T_threshold");
}

}  // namespace

void register_image_boxes(Registry& r) {
  const Tensor boxes{{0.f, 0.f, 1.f, 1.f},
                     {0.f, 0.25f, 1.f, 1.25f},
                     {0.f, -0.25f, 1.f, 0.75f},
                     {0.f, 10.f, 1.f, 11.f},
                     {1.f, 11.25f, 0.f, 10.25f}};
  const Tensor scores{.875f, .75f, .625f, .9375f, .5f};
  const Tensor half(.5f), low(-1.f);

  r.define<ThresholdAttrs>("NonMaxSuppression")
      .in("boxes", DType::float32)
      .in("scores", DType::float32)
      .in_host("max_output_size", DType::int32)
      .out("selected_indices", DType::int32)
      .shape(indices_shape)
      .cpu([](KernelContext& c, const ThresholdAttrs& a) {
        Choice o = choice_of<float>(c);
        o.overlap = static_cast<float>(a.iou_threshold);
        give_indices(c, chosen_of<float>(c, o));
      })
      .doc("The boxes with the highest scores, without those that overlap a better one by more than iou_threshold.")
      .sample({.in = {boxes, scores, Tensor(3)}, .out = {Tensor{3, 0}}})
      .sample({.in = {boxes, scores, Tensor(9)}, .out = {Tensor{3, 0, 1, 2, 4}}}, {.iou_threshold = 0.75})
      .sample({.in = {boxes, Tensor{1.f}, Tensor(9)}, .error = "5 boxes, but 1 scores"});

  with_boxes(r.define("NonMaxSuppressionV2"))
      .out("selected_indices", DType::int32)
      .shape(indices_shape)
      .cpu([]<class T>(KernelContext& c) { give_indices(c, chosen_of<T>(c, choice_of<T>(c))); })
      .doc("The boxes with the highest scores, without those that overlap a better one by more than iou_threshold.")
      .sample({.in = {boxes, scores, Tensor(3), half}, .out = {Tensor{3, 0}}})
      .sample({.in = {boxes, scores, Tensor(3), Tensor(2.f)}, .error = "iou_threshold must be between 0 and 1"});

  with_boxes(r.define("NonMaxSuppressionV3"))
      .in("score_threshold", "T_threshold")
      .out("selected_indices", DType::int32)
      .shape(indices_shape)
      .cpu([]<class T>(KernelContext& c) { give_indices(c, chosen_of<T>(c, choice_of<T>(c))); })
      .doc("The boxes with the highest scores above score_threshold, without those that overlap a better one too much.")
      .sample({.in = {boxes, scores, Tensor(3), half, low}, .out = {Tensor{3, 0}}})
      .sample({.in = {boxes, scores, Tensor(3), Tensor(1.f), Tensor(.75f)}, .out = {Tensor{3, 0}}})
      .sample({.in = {boxes, scores, Tensor(-3), half, low}, .error = "max_output_size must not be negative"});

  with_boxes(r.define<PadAttrs>("NonMaxSuppressionV4"))
      .in("score_threshold", "T_threshold")
      .out("selected_indices", DType::int32)
      .out("valid_outputs", DType::int32)
      .shape([](InferContext& c, const PadAttrs& a) {
        check_boxes(c);
        const auto most = c.constant_ints(2);
        c.output(0, PartialShape{a.pad_to_max_output_size && most ? (*most)[0] : kUnknownDim});
        c.output(1, PartialShape{});
      })
      .cpu([]<class T>(KernelContext& c, const PadAttrs& a) {
        const Choice o = choice_of<T>(c);
        const Chosen chosen = chosen_of<T>(c, o);
        give<int32_t>(c, 0, chosen.boxes, padded_size(chosen, a.pad_to_max_output_size, o.most));
        *c.out<int32_t>(1) = static_cast<int32_t>(chosen.boxes.size());
      })
      .doc("NonMaxSuppressionV3, filled up with zeros to max_output_size where asked, and how many were found.")
      .sample({.in = {boxes, scores, Tensor(4), half, low}, .out = {Tensor{3, 0, 0, 0}, Tensor(2)}},
              {.pad_to_max_output_size = true})
      .sample({.in = {boxes, scores, Tensor(4), half, low}, .out = {Tensor{3, 0}, Tensor(2)}});

  r.define<PadAttrs>("NonMaxSuppressionV5")
      .in("boxes", box_types, DType::float32)
      .in("scores")
      .in_host("max_output_size", DType::int32)
      .in("iou_threshold")
      .in("score_threshold")
      .in("soft_nms_sigma")
      .out("selected_indices", DType::int32)
      .out("selected_scores", "T")
      .out("valid_outputs", DType::int32)
      .shape([](InferContext& c, const PadAttrs& a) {
        check_boxes(c);
        const auto most = c.constant_ints(2);
        const PartialShape some{a.pad_to_max_output_size && most ? (*most)[0] : kUnknownDim};
        c.output(0, some);
        c.output(1, some);
        c.output(2, PartialShape{});
      })
      .cpu([]<class T>(KernelContext& c, const PadAttrs& a) {
        const Choice o = choice_of<T>(c);
        const Chosen chosen = chosen_of<T>(c, o);
        const int64_t size = padded_size(chosen, a.pad_to_max_output_size, o.most);
        give<int32_t>(c, 0, chosen.boxes, size);
        give<T>(c, 1, chosen.scores, size);
        *c.out<int32_t>(2) = static_cast<int32_t>(chosen.boxes.size());
      })
      .not_differentiable()
      .doc("NonMaxSuppressionV4 with scores; with soft_nms_sigma they fall the more a box overlaps better ones.")
      .sample({.in = {boxes, scores, Tensor(4), half, low, Tensor(0.f)},
               .out = {Tensor{3, 0, 0, 0}, Tensor{.9375f, .875f, 0.f, 0.f}, Tensor(2)}},
              {.pad_to_max_output_size = true})
      .sample({.in = {Tensor{{0.f, 0.f, 1.f, 1.f}, {0.f, 0.f, 1.f, .5f}}, Tensor{1.f, 1.f}, Tensor(4), Tensor(1.f), low,
                      Tensor(.5f)},
               .out = {Tensor{0, 1}, Tensor{1.f, .77880078f}, Tensor(2)}})
      // With sigma the threshold of the overlap counts for nothing.
      .sample({.in = {Tensor{{0.f, 0.f, 1.f, 1.f}, {0.f, 0.f, 1.f, .5f}, {0.f, 0.f, 1.f, 1.f}}, Tensor{1.f, .9f, .8f},
                      Tensor(4), Tensor(.3f), Tensor(.1f), Tensor(.5f)},
               .out = {Tensor{0, 1, 2}, Tensor{1.f, .70092072f, .22920385f}, Tensor(3)}})
      .sample({.in = {Tensor{{0.f, 0.f, 1.f, 1.f}, {0.f, 0.f, 1.f, 1.f}}, Tensor{INFINITY, INFINITY}, Tensor(4),
                      Tensor(.5f), low, Tensor(.0001f)},
               .out = {Tensor{0}, Tensor{INFINITY}, Tensor(1)}});

  r.define("NonMaxSuppressionWithOverlaps")
      .in("overlaps", DType::float32)
      .in("scores", DType::float32)
      .in_host("max_output_size", DType::int32)
      .in("overlap_threshold", DType::float32)
      .in("score_threshold", DType::float32)
      .out("selected_indices", DType::int32)
      .shape([](InferContext& c) {
        c.require_rank(0, 2);
        c.require_rank(1, 1);
        for (int i = 2; i < 5; ++i) c.require_rank(i, 0);
        const PartialShape &all = c.input(0), &own = c.input(1);
        const bool square = !all.has_rank() || all[0] < 0 || all[1] < 0 || all[0] == all[1];
        if (!square || (all.has_rank() && own.has_rank() && all[0] >= 0 && own[0] >= 0 && all[0] != own[0])) {
          throw invalid_argument("overlaps must be [n, n] for n scores, got {} and {}", all.str(), own.str());
        }
        c.output(PartialShape{kUnknownDim});
      })
      .cpu([](KernelContext& c) {
        const int64_t n = c.in(1).num_elements();
        const Choice o{.most = c.int_scalar(2), .overlap = *c.in<float>(3), .score = *c.in<float>(4)};
        if (o.most < 0) throw invalid_argument("max_output_size must not be negative, got {}", o.most);
        const std::vector<float> own(c.in<float>(1), c.in<float>(1) + n);
        give_indices(c, choose_boxes(own, o, [&](int32_t a, int32_t b) { return c.in<float>(0)[a * n + b]; }));
      })
      .doc("The boxes with the highest scores, without those that overlap a better one too much, as overlaps tell.")
      .sample({.in = {Tensor{{1.f, .6f}, {.6f, 1.f}}, Tensor{.9f, .8f}, Tensor(2), Tensor(.5f), Tensor(.1f)},
               .out = {Tensor{0}}})
      .sample({.in = {Tensor{{1.f, .6f}}, Tensor{.9f, .8f}, Tensor(2), Tensor(.5f), Tensor(.1f)}, .error = "[n, n]"});

  r.define<CombinedAttrs>("CombinedNonMaxSuppression")
      .in("boxes", DType::float32)
      .in("scores", DType::float32)
      .in_host("max_output_size_per_class", DType::int32)
      .in_host("max_total_size", DType::int32)
      .in("iou_threshold", DType::float32)
      .in("score_threshold", DType::float32)
      .out("nmsed_boxes", DType::float32)
      .out("nmsed_scores", DType::float32)
      .out("nmsed_classes", DType::float32)
      .out("valid_detections", DType::int32)
      .shape([](InferContext& c) {
        c.require_rank(0, 4);
        c.require_rank(1, 3);
        for (int i = 2; i < 6; ++i) c.require_rank(i, 0);
        const PartialShape &all = c.input(0), &own = c.input(1);
        if (all.is_static() && own.is_static() &&
            (all[3] != 4 || all[0] != own[0] || all[1] != own[1] || (all[2] != 1 && all[2] != own[2]))) {
          throw invalid_argument(
              "boxes must be [batch, n, 1 or classes, 4] and scores [batch, n, classes], got {} and {}", all.str(),
              own.str());
        }
        const int64_t batch = all.has_rank() ? all[0] : kUnknownDim;
        c.output(0, PartialShape{batch, kUnknownDim, 4});
        c.output(1, PartialShape{batch, kUnknownDim});
        c.output(2, PartialShape{batch, kUnknownDim});
        c.output(3, PartialShape{batch});
      })
      .cpu([](KernelContext& c, const CombinedAttrs& a) { combined(c, a); })
      .not_differentiable()
      .doc("The boxes with the highest scores of every class, chosen class by class, the best of all classes first.")
      .sample({.in = {Tensor{{{{0.f, 0.f, 1.f, 1.f}}, {{0.f, .25f, 1.f, 1.25f}}}}, Tensor{{{.9f, .1f}, {.8f, .7f}}},
                      Tensor(2), Tensor(3), half, Tensor(.15f)},
               .out = {Tensor{{{0.f, 0.f, 1.f, 1.f}, {0.f, .25f, 1.f, 1.f}, {0.f, 0.f, 0.f, 0.f}}},
                       Tensor{{.9f, .7f, 0.f}}, Tensor{{0.f, 1.f, 0.f}}, Tensor{2}}});
}

namespace image {

Tensor non_max_suppression(const Operand& boxes, const Operand& scores, const Operand& max_output_size,
                           const Operand& iou_threshold, const Operand& score_threshold) {
  static const Op op("NonMaxSuppressionV3");
  return op({boxes, scores, max_output_size, iou_threshold, score_threshold});
}

SuppressionWithScores non_max_suppression_with_scores(const Operand& boxes, const Operand& scores,
                                                      const Operand& max_output_size, const Operand& iou_threshold,
                                                      const Operand& score_threshold, const Operand& soft_nms_sigma) {
  static const Op<PadAttrs> op("NonMaxSuppressionV5");
  const auto parts = op.many({boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma});
  return {parts[0], parts[1]};
}

Tensor non_max_suppression_overlaps(const Operand& overlaps, const Operand& scores, const Operand& max_output_size,
                                    const Operand& overlap_threshold, const Operand& score_threshold) {
  static const Op op("NonMaxSuppressionWithOverlaps");
  return op({overlaps, scores, max_output_size, overlap_threshold, score_threshold});
}

CombinedSuppression combined_non_max_suppression(const Operand& boxes, const Operand& scores,
                                                 const Operand& max_output_size_per_class,
                                                 const Operand& max_total_size, const Operand& iou_threshold,
                                                 const Operand& score_threshold, bool pad_per_class, bool clip_boxes) {
  static const Op<CombinedAttrs> op("CombinedNonMaxSuppression");
  const auto parts = op.many({boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold},
                             {.pad_per_class = pad_per_class, .clip_boxes = clip_boxes});
  return {parts[0], parts[1], parts[2], parts[3]};
}

}  // namespace image
}  // namespace runnel
