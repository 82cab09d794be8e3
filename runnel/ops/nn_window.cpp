#include "runnel/ops/nn_window.h"

#include <algorithm>

#include "runnel/base/format.h"
#include "runnel/op/sizes.h"
#include "runnel/ops/array.h"

namespace runnel {
namespace {

void check_list(const std::vector<int64_t>& values, int dims, const char* what) {
  const auto n = static_cast<size_t>(dims) + 2;
  if (values.size() != n) {
    throw invalid_argument("{} must have {} values, got [{}]", what, n, comma_separated(values));
  }
  for (int64_t v : values) {
    if (v < 1) throw invalid_argument("{} must be positive, got [{}]", what, comma_separated(values));
  }
  if (values.front() != 1 || values.back() != 1) {
    throw invalid_argument("{} must be 1 for the batch and the channels, got [{}]", what, comma_separated(values));
  }
}

}  // namespace

Windows place_windows(const WindowSpec& spec, const Dims& in, const Dims& size) {
  check_list(spec.strides, spec.dims, "strides");
  check_list(spec.dilations, spec.dims, "dilations");
  const bool same = spec.padding == "SAME";
  const bool is_explicit = spec.padding == "EXPLICIT" && spec.explicit_paddings;
  if (is_explicit) {
    const auto& p = *spec.explicit_paddings;
    if (p.size() != 2 * (static_cast<size_t>(spec.dims) + 2) ||
        std::any_of(p.begin(), p.end(), [](int64_t v) { return v < 0; })) {
      throw invalid_argument("explicit_paddings must be {} values, none negative, got [{}]", 2 * (spec.dims + 2),
                             comma_separated(p));
    }
    if (p[0] != 0 || p[1] != 0 || p[p.size() - 2] != 0 || p.back() != 0) {
      throw invalid_argument("explicit_paddings must be 0 for the batch and the channels, got [{}]",
                             comma_separated(p));
    }
  } else if (spec.explicit_paddings && !spec.explicit_paddings->empty()) {
    throw invalid_argument("explicit_paddings are given, but padding is \"{}\"", spec.padding);
  }
  Windows windows;
  for (int d = 0; d < spec.dims; ++d) {
    const auto i = static_cast<size_t>(d);
    Window& w = windows[i];
    w.in = in[i];
    w.size = size[i];
    w.stride = spec.strides[i + 1];
    w.dilation = spec.dilations[i + 1];
    if (is_explicit) {
      w.before = (*spec.explicit_paddings)[2 * (i + 1)];
      w.after = (*spec.explicit_paddings)[2 * (i + 1) + 1];
    }
    if (w.in < 0 || w.size < 0) {
      if (same && w.in >= 0) w.out = checked_plus(w.in, w.stride - 1) / w.stride;
      continue;
    }
    if (w.size == 0) throw invalid_argument("the window has size 0 along spatial dimension {}", d);
    const int64_t extent = checked_plus(checked_times(w.size - 1, w.dilation), 1);
    if (same) {
      w.out = checked_plus(w.in, w.stride - 1) / w.stride;
      const int64_t missing = std::max<int64_t>(0, checked_plus((w.out - 1) * w.stride - w.in, extent));
      w.before = missing / 2;
      w.after = missing - w.before;
      continue;
    }
    const int64_t room = checked_plus(checked_plus(checked_plus(w.in, w.before), w.after) - extent, w.stride);
    w.out = room / w.stride;
    if (room < 0 && w.out < 0) {
      throw invalid_argument(
          "the output would have a negative size: a window of {} (dilation {}) over {} cells (padding {} and "
          "{}) along "
          "spatial dimension {}",
          w.size, w.dilation, w.in, w.before, w.after, d);
    }
  }
  return windows;
}

std::vector<int64_t> full_list(const std::vector<int64_t>& values, int dims, const char* op, const char* what) {
  const auto n = static_cast<size_t>(dims);
  if (values.size() == n + 2) return values;
  std::vector<int64_t> full(n + 2, 1);
  if (values.size() == 1) {
    std::fill_n(full.begin() + 1, n, values[0]);
  } else if (values.size() == n) {
    std::copy(values.begin(), values.end(), full.begin() + 1);
  } else {
    throw invalid_argument("[{}] {} must have 1, {} or {} values, got [{}]", op, what, n, n + 2,
                           comma_separated(values));
  }
  return full;
}

std::vector<int64_t> full_paddings(const std::vector<int64_t>& values, int dims, const char* op) {
  const auto n = static_cast<size_t>(dims);
  if (values.empty() || values.size() == 2 * (n + 2)) return values;
  if (values.size() != 2 * n) {
    throw invalid_argument("[{}] explicit_paddings must have {} or {} values, got [{}]", op, 2 * n, 2 * (n + 2),
                           comma_separated(values));
  }
  std::vector<int64_t> full(2 * (n + 2), 0);
  std::copy(values.begin(), values.end(), full.begin() + 2);
  return full;
}

Tensor shape_vector(const Tensor& x) {
  const PartialShape s = x.partial_shape();
  return s.is_static() ? int_vector(s.dims()) : shape(x);
}

const char* channels_last_format(int dims) { return dims == 1 ? "NWC" : dims == 2 ? "NHWC" : "NDHWC"; }

}  // namespace runnel
