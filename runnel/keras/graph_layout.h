#pragma once

#include <cstddef>
#include <vector>

// Places boxes in rows so that arrows lead from row to row around the boxes.
namespace runnel::keras::utils {

struct LayoutBox {
  double width, height;  // given
  double x = 0, y = 0;   // the centre: what the layout finds
};

// An upright part of an arrow; in the space between two rows a curve leads from one to the next.
struct ArrowPart {
  double x, begin, end;
};
struct LayoutArrow {
  size_t from, to;               // given: two different boxes
  std::vector<ArrowPart> parts;  // found: from the border of one box to that of the other
};

struct LayoutSize {
  double width, height;
};
// An arrow leads to a lower row, unless arrows go in circles. No two arrows may connect the same boxes.
LayoutSize lay_out(std::vector<LayoutBox>& boxes, std::vector<LayoutArrow>& arrows);

}  // namespace runnel::keras::utils
