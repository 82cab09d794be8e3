#include "runnel/io/stroke_font.h"

#include <optional>

namespace runnel::io {
namespace {

// Coordinates are single characters, 0 to 9 and then a to k for 10 to 20: x from the left, y from the top of capitals
// (0) over that of small letters (4) and the baseline (14) down to 18. A pair is a point of the line, a pair after ~
// bends the way between the points beside it (a quadratic curve). A space begins another line.
struct Glyph {
  int width;
  const char* lines;
};
constexpr int kBaseline = 14, kSpacing = 5, kCurveSteps = 6;
constexpr double kUnitsPerSize = 19.5;  // so that capitals have the height that sans-serif fonts give them

constexpr Glyph kGlyphs[] = {
    {2, ""},                                                     // space
    {0, "0009 0d0e"},                                            // !
    {3, "0004 3034"},                                            // "
    {10, "402e 806e 05a5 09a9"},                                 // #
    {8, "83~8141~0104~0747~878a~8d4d~0d0a 4042 4c4e"},           // $
    {14, "30~6063~6636~0603~0030 b8~e8eb~eebe~8e8b~88b8 c02e"},  // %
    {10, "ae24~1040~7073~7537~080b~0e4e~8ea8"},                  // &
    {0, "0004"},                                                 // '
    {3, "30~0308~0d3g"},                                         // (
    {3, "00~3338~3d0g"},                                         // )
    {6, "3137 0266 6206"},                                       // *
    {8, "454d 0989"},                                            // +
    {1, "1d0g"},                                                 // ,
    {5, "0959"},                                                 // -
    {0, "0d0e"},                                                 // .
    {6, "600g"},                                                 // /
    {8, "40~8087~8e4e~0e07~0040"},                               // 0
    {8, "23505e"},                                               // 1
    {8, "04~0040~8084~870e8e"},                                  // 2
    {8, "02~1040~8083~8747 3747~878a~8e4e~1e0c"},                // 3
    {8, "6e600a8a"},                                             // 4
    {8, "701006~2545~8589~8e4e~1e0c"},                           // 5
    {8, "72~6040~0009~0e4e~8e8a~8646~060a"},                     // 6
    {8, "00803e"},                                               // 7
    {8, "40~7073~7747~1713~1040 47~878a~8e4e~0e0a~0747"},        // 8
    {8, "1c~2e4e~8e85~8040~0004~0848~8884"},                     // 9
    {0, "0506 0d0e"},                                            // :
    {1, "1516 1d0g"},                                            // ;
    {7, "74097e"},                                               // <
    {8, "0787 0b8b"},                                            // =
    {7, "04790e"},                                               // >
    {7, "03~0040~7073~763a 3d3e"},                               // ?
    {14, "cg~0j09~0171~e1e9~edbd~9d9a a6~ad7d~4d4a~4676~a6a9"},  // @
    {10, "0e50ae 2989"},                                         // A
    {8, "000e 0040~7073~7747 0747~878a~8e4e0e"},                 // B
    {10, "a4~9050~0007~0e5e~9eaa"},                              // C
    {9, "000e 0040~9097~9e4e0e"},                                // D
    {7, "70000e7e 0767"},                                        // E
    {7, "70000e 0767"},                                          // F
    {10, "a3~9050~0007~0e5e~aea868"},                            // G
    {9, "000e 909e 0797"},                                       // H
    {0, "000e"},                                                 // I
    {5, "505a~5e2e~0e0b"},                                       // J
    {9, "000e 9009 369e"},                                       // K
    {7, "000e7e"},                                               // L
    {12, "0e006ac0ce"},                                          // M
    {9, "0e009e90"},                                             // N
    {10, "50~a0a7~ae5e~0e07~0050"},                              // O
    {8, "000e 0040~8084~884808"},                                // P
    {10, "50~a0a7~ae5e~0e07~0050 6aaf"},                         // Q
    {8, "000e 0040~8084~884808 488e"},                           // R
    {8, "83~7040~0003~0747~878a~8e4e~1e0b"},                     // S
    {10, "00a0 505e"},                                           // T
    {8, "0009~0e4e~8e8980"},                                     // U
    {10, "005ea0"},                                              // V
    {14, "004e70aee0"},                                          // W
    {9, "009e 900e"},                                            // X
    {10, "0057a0 575e"},                                         // Y
    {9, "00900e9e"},                                             // Z
    {3, "30000g3g"},                                             // [
    {6, "006g"},                                                 // backslash
    {3, "00303g0g"},                                             // ]
    {6, "053065"},                                               // ^
    {8, "0g8g"},                                                 // _
    {2, "0023"},                                                 // `
    {8, "16~1444~84878e 8848~080b~0e3e~8e8a"},                   // a
    {8, "000e 09~0444~8489~8e4e~0e09"},                          // b
    {7, "76~6444~0409~0e4e~6e7c"},                               // c
    {8, "808e 89~8444~0409~0e4e~8e89"},                          // d
    {8, "0989~8444~0409~0e4e~7e8c"},                             // e
    {5, "50~20242e 0454"},                                       // f
    {8, "848e~8i4i~1i0g 89~8444~0409~0e4e~8e89"},                // g
    {7, "000e 08~0444~74787e"},                                  // h
    {0, "040e 0001"},                                            // i
    {2, "242f~2i0i 2021"},                                       // j
    {7, "000e 740a 377e"},                                       // k
    {2, "000b~0e2e"},                                            // l
    {12, "040e 07~0434~64676e 67~6494~c4c7ce"},                  // m
    {7, "040e 08~0444~74787e"},                                  // n
    {8, "44~8489~8e4e~0e09~0444"},                               // o
    {8, "040i 09~0444~8489~8e4e~0e09"},                          // p
    {8, "848i 89~8444~0409~0e4e~8e89"},                          // q
    {4, "040e 08~0444"},                                         // r
    {7, "66~6434~0406~0939~797b~7e4e~1e0c"},                     // s
    {5, "212b~2e5e 0454"},                                       // t
    {7, "040a~0e3e~7e7a 747e"},                                  // u
    {8, "044e84"},                                               // v
    {12, "043e659ec4"},                                          // w
    {7, "047e 740e"},                                            // x
    {8, "044e 843g~2i0i"},                                       // y
    {7, "04740e7e"},                                             // z
    {4, "40~2024~2808~282c~2g4g"},                               // {
    {0, "000g"},                                                 // |
    {4, "00~2024~2848~282c~2g0g"},                               // }
    {9, "0a~2659~8c98"},                                         // ~
};
constexpr Glyph kUnknownGlyph = {8, "000e8e8000"};
static_assert(std::size(kGlyphs) == '~' - ' ' + 1);

int coordinate(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// The glyphs of UTF-8 text, one for each character.
template <class Visit>
void for_each_glyph(std::string_view text, const Visit& visit) {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;  // a further byte of a character
    visit(c >= ' ' && c <= '~' ? kGlyphs[c - ' '] : kUnknownGlyph);
  }
}

class GlyphReader {
 public:
  GlyphReader(const Glyph& glyph, double left, std::vector<std::vector<CanvasPoint>>& out) : left_(left), out_(out) {
    bool begins = true;
    for (const char* at = glyph.lines; *at != 0;) {
      if (*at == ' ') {
        begins = true;
        ++at;
        continue;
      }
      const bool bends = *at == '~';
      if (bends) ++at;
      const CanvasPoint p = point(at);
      at += 2;
      if (bends) {
        bend_ = p;
      } else if (begins) {
        out_.push_back({p});
      } else {
        lead_to(p);
      }
      begins = false;
    }
  }

 private:
  CanvasPoint point(const char* at) const {
    return {left_ + coordinate(at[0]) / kUnitsPerSize, (coordinate(at[1]) - kBaseline) / kUnitsPerSize};
  }
  void lead_to(CanvasPoint to) {
    std::vector<CanvasPoint>& line = out_.back();
    const CanvasPoint from = line.back();
    for (int i = 1; bend_ && i < kCurveSteps; ++i) {
      const double t = i / static_cast<double>(kCurveSteps), s = 1 - t;
      line.push_back(
          {s * s * from.x + 2 * s * t * bend_->x + t * t * to.x, s * s * from.y + 2 * s * t * bend_->y + t * t * to.y});
    }
    line.push_back(to);
    bend_.reset();
  }

  double left_;
  std::vector<std::vector<CanvasPoint>>& out_;
  std::optional<CanvasPoint> bend_;
};

}  // namespace

std::vector<std::vector<CanvasPoint>> text_strokes(std::string_view text) {
  std::vector<std::vector<CanvasPoint>> lines;
  double left = kSpacing / 2.0 / kUnitsPerSize;
  for_each_glyph(text, [&](const Glyph& glyph) {
    GlyphReader(glyph, left, lines);
    left += (glyph.width + kSpacing) / kUnitsPerSize;
  });
  return lines;
}

double text_advance(std::string_view text) {
  int units = 0;
  for_each_glyph(text, [&](const Glyph& glyph) { units += glyph.width + kSpacing; });
  return units / kUnitsPerSize;
}

}  // namespace runnel::io
