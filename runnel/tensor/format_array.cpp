#include "runnel/tensor/format_array.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "runnel/base/format.h"
#include "runnel/tensor/format_element.h"

namespace runnel {
namespace {

int64_t count_of(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) {
    count *= dim;
  }
  return count;
}

void strip_right(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

// Writes the brackets and lines of one array.
class Layout {
 public:
  Layout(const ArrayView& array, const ArrayFormat& options, std::string_view separator)
      : dims_(array.dims), edge_(options.edge_items), separator_(separator) {
    if (edge_ < 1) {
      throw invalid_argument("edge_items must be at least 1, not {}", edge_);
    }
    summarise_ = count_of(dims_) > options.threshold;
    std::vector<int64_t> indices;
    collect(0, 0, indices);
    words_ = format_elements(array, indices, options);
  }

  // indent: the columns already taken on every line but the first; the text starts after them.
  std::string text(size_t indent, int width) {
    next_ = 0;
    return write(0, indent + 1, width);
  }

 private:
  bool cut(size_t axis) const { return summarise_ && dims_[axis] > 2 * edge_; }

  // The flat indices of the elements shown, in order.
  void collect(size_t axis, int64_t base, std::vector<int64_t>& indices) const {
    if (axis == dims_.size()) {
      indices.push_back(base);
      return;
    }
    for (int64_t i = 0; i < dims_[axis]; ++i) {
      if (cut(axis) && i == edge_) {
        i = dims_[axis] - edge_;
      }
      collect(axis + 1, base * dims_[axis] + i, indices);
    }
  }

  // A block from its opening to its closing bracket; the lines after the first start with `indent` spaces.
  // width: the columns left for it, less the brackets that will close around it.
  std::string write(size_t axis, size_t indent, int width) {
    if (axis == dims_.size()) {
      return words_[next_++];
    }
    const bool is_cut = cut(axis);
    const int64_t shown = is_cut ? 2 * edge_ : dims_[axis];
    return axis + 1 == dims_.size() ? write_row(shown, is_cut, indent, width)
                                    : write_blocks(axis, shown, is_cut, indent, width);
  }

  std::string write_row(int64_t shown, bool is_cut, size_t indent, int width) {
    std::string text = "[";
    std::string line(indent, ' ');
    bool first_line = true;
    const auto flush = [&] {
      strip_right(line);
      text.append(line, first_line ? std::min(indent, line.size()) : 0);
      text += '\n';
      line.assign(indent, ' ');
      first_line = false;
    };
    const auto add = [&](std::string_view word) {
      if (line.size() > indent && static_cast<int64_t>(line.size() + word.size()) > width - 1) {
        flush();
      }
      line += word;
    };
    for (int64_t i = 0; i < shown; ++i) {
      if (is_cut && i == edge_) {
        add("...");
        line += separator_;
      }
      add(words_[next_++]);
      if (i + 1 < shown) {
        line += separator_;
      }
    }
    text.append(line, first_line ? indent : 0);
    text += ']';
    return text;
  }

  std::string write_blocks(size_t axis, int64_t shown, bool is_cut, size_t indent, int width) {
    std::string between(separator_);
    strip_right(between);
    between.append(dims_.size() - axis - 1, '\n');
    between.append(indent, ' ');
    std::string text = "[";
    for (int64_t i = 0; i < shown; ++i) {
      if (is_cut && i == edge_) {
        text += "...";
        text += between;
      }
      text += write(axis + 1, indent + 1, width - 1);
      if (i + 1 < shown) {
        text += between;
      }
    }
    text += ']';
    return text;
  }

  std::span<const int64_t> dims_;
  int64_t edge_;
  std::string_view separator_;
  bool summarise_ = false;
  std::vector<std::string> words_;
  size_t next_ = 0;
};

// The dtype of the NumPy array: strings are held as objects.
const char* numpy_name(DType dtype) { return dtype == DType::string ? "object" : dtype_name(dtype); }

bool is_handle(DType dtype) { return dtype == DType::resource || dtype == DType::variant; }

std::string on_its_own_lines(const std::string& text) {
  return text.find('\n') == std::string::npos ? text : '\n' + text;
}

// "numpy=array(...)"; handles have no NumPy form and are described.
std::string value_repr(const ArrayView& array, const ArrayFormat& options) {
  if (is_handle(array.dtype)) {
    return "value=" + on_its_own_lines(format_array(array, options));
  }
  return "numpy=" + on_its_own_lines(array.dims.empty() ? format_scalar(array, 0) : format_array_repr(array, options));
}

}  // namespace

std::string format_array(const ArrayView& array, const ArrayFormat& options) {
  if (array.dims.empty()) {
    return format_scalar(array, 0);
  }
  if (count_of(array.dims) == 0) {
    return "[]";
  }
  return Layout(array, options, " ").text(0, options.line_width);
}

std::string format_array_repr(const ArrayView& array, const ArrayFormat& options) {
  constexpr std::string_view prefix = "array(";
  const int64_t count = count_of(array.dims);
  const bool implied = count > 0 && (array.dtype == DType::float64 || array.dtype == DType::int64 ||
                                     array.dtype == DType::complex128 || array.dtype == DType::bool_);
  std::string text(prefix);
  if (count > 0) {
    text += Layout(array, options, ", ").text(prefix.size(), options.line_width - 1);
  } else {
    text += array.dims.size() == 1 ? "[]" : "[], shape=" + format_shape(array.dims);
  }
  if (implied) {
    return text + ')';
  }
  text += ',';
  const std::string type = fmt::format("dtype={})", numpy_name(array.dtype));
  const size_t last_line = text.size() - (text.rfind('\n') + 1);
  const bool fits = static_cast<int64_t>(last_line + type.size() + 1) <= options.line_width;
  text += fits ? " " : '\n' + std::string(prefix.size(), ' ');
  return text + type;
}

std::string format_shape(std::span<const int64_t> dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += dims[i] < 0 ? "None" : std::to_string(dims[i]);
  }
  text += dims.size() == 1 ? ",)" : ")";
  return text;
}

std::string tensor_to_string(const ArrayView& array, const ArrayFormat& options) {
  return fmt::format("tf.Tensor({}, shape={}, dtype={})", on_its_own_lines(format_array(array, options)),
                     format_shape(array.dims), dtype_name(array.dtype));
}

std::string tensor_repr(const ArrayView& array, const ArrayFormat& options) {
  return fmt::format("<tf.Tensor: shape={}, dtype={}, {}>", format_shape(array.dims), dtype_name(array.dtype),
                     value_repr(array, options));
}

std::string variable_repr(std::string_view name, std::string_view shape, const ArrayView& value,
                          const ArrayFormat& options) {
  return fmt::format("<tf.Variable '{}' shape={} dtype={}, {}>", name, shape, dtype_name(value.dtype),
                     value_repr(value, options));
}

}  // namespace runnel
