// Letters in the other case, by Unicode's full mappings.
#include <algorithm>
#include <clocale>
#include <cwctype>
#include <unordered_map>

#include "runnel/base/utf8.h"

namespace runnel {
namespace {

// Letters that become several in upper case: each word is a letter and what stands for it (Unicode's SpecialCasing).
constexpr std::u32string_view kLongUpper =
    U"\u00DFSS \u0149\u02BCN \u01F0J\u030C \u0390\u0399\u0308\u0301 \u03B0\u03A5\u0308\u0301 \u0587\u0535\u0552 "
    U"\u1E96H\u0331 \u1E97T\u0308 \u1E98W\u030A \u1E99Y\u030A \u1E9AA\u02BE \u1F50\u03A5\u0313 "
    U"\u1F52\u03A5\u0313\u0300 \u1F54\u03A5\u0313\u0301 \u1F56\u03A5\u0313\u0342 \u1F80\u1F08\u0399 "
    U"\u1F81\u1F09\u0399 \u1F82\u1F0A\u0399 \u1F83\u1F0B\u0399 \u1F84\u1F0C\u0399 \u1F85\u1F0D\u0399 "
    U"\u1F86\u1F0E\u0399 \u1F87\u1F0F\u0399 \u1F88\u1F08\u0399 \u1F89\u1F09\u0399 \u1F8A\u1F0A\u0399 "
    U"\u1F8B\u1F0B\u0399 \u1F8C\u1F0C\u0399 \u1F8D\u1F0D\u0399 \u1F8E\u1F0E\u0399 \u1F8F\u1F0F\u0399 "
    U"\u1F90\u1F28\u0399 \u1F91\u1F29\u0399 \u1F92\u1F2A\u0399 \u1F93\u1F2B\u0399 \u1F94\u1F2C\u0399 "
    U"\u1F95\u1F2D\u0399 \u1F96\u1F2E\u0399 \u1F97\u1F2F\u0399 \u1F98\u1F28\u0399 \u1F99\u1F29\u0399 "
    U"\u1F9A\u1F2A\u0399 \u1F9B\u1F2B\u0399 \u1F9C\u1F2C\u0399 \u1F9D\u1F2D\u0399 \u1F9E\u1F2E\u0399 "
    U"\u1F9F\u1F2F\u0399 \u1FA0\u1F68\u0399 \u1FA1\u1F69\u0399 \u1FA2\u1F6A\u0399 \u1FA3\u1F6B\u0399 "
    U"\u1FA4\u1F6C\u0399 \u1FA5\u1F6D\u0399 \u1FA6\u1F6E\u0399 \u1FA7\u1F6F\u0399 \u1FA8\u1F68\u0399 "
    U"\u1FA9\u1F69\u0399 \u1FAA\u1F6A\u0399 \u1FAB\u1F6B\u0399 \u1FAC\u1F6C\u0399 \u1FAD\u1F6D\u0399 "
    U"\u1FAE\u1F6E\u0399 \u1FAF\u1F6F\u0399 \u1FB2\u1FBA\u0399 \u1FB3\u0391\u0399 \u1FB4\u0386\u0399 "
    U"\u1FB6\u0391\u0342 \u1FB7\u0391\u0342\u0399 \u1FBC\u0391\u0399 \u1FC2\u1FCA\u0399 \u1FC3\u0397\u0399 "
    U"\u1FC4\u0389\u0399 \u1FC6\u0397\u0342 \u1FC7\u0397\u0342\u0399 \u1FCC\u0397\u0399 \u1FD2\u0399\u0308\u0300 "
    U"\u1FD3\u0399\u0308\u0301 \u1FD6\u0399\u0342 \u1FD7\u0399\u0308\u0342 \u1FE2\u03A5\u0308\u0300 "
    U"\u1FE3\u03A5\u0308\u0301 \u1FE4\u03A1\u0313 \u1FE6\u03A5\u0342 \u1FE7\u03A5\u0308\u0342 \u1FF2\u1FFA\u0399 "
    U"\u1FF3\u03A9\u0399 \u1FF4\u038F\u0399 \u1FF6\u03A9\u0342 \u1FF7\u03A9\u0342\u0399 \u1FFC\u03A9\u0399 \uFB00FF "
    U"\uFB01FI \uFB02FL \uFB03FFI \uFB04FFL \uFB05ST \uFB06ST \uFB13\u0544\u0546 \uFB14\u0544\u0535 "
    U"\uFB15\u0544\u053B \uFB16\u054E\u0546 \uFB17\u0544\u053D";

const std::unordered_map<char32_t, std::u32string_view>& long_upper() {
  static const auto map = [] {
    std::unordered_map<char32_t, std::u32string_view> made;
    for (std::u32string_view rest = kLongUpper; !rest.empty();) {
      const size_t end = std::min(rest.find(U' '), rest.size());
      made.emplace(rest[0], rest.substr(1, end - 1));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return made;
  }();
  return map;
}

locale_t unicode() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

bool is_letter(uint32_t c) { return unicode() != nullptr && iswalpha_l(c, unicode()) != 0; }

constexpr uint32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130;

}  // namespace

std::string utf8_upper(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    text.remove_prefix(static_cast<size_t>(c.bytes));
    const auto several = c.value < 0x80 ? long_upper().end() : long_upper().find(c.value);
    if (several != long_upper().end()) {
      for (const char32_t u : several->second) append_utf8(u, out);
    } else {
      append_utf8(unicode() == nullptr ? c.value : towupper_l(c.value, unicode()), out);
    }
  }
  return out;
}

std::string utf8_lower(std::string_view text) {
  std::string out;
  bool in_word = false;
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    text.remove_prefix(static_cast<size_t>(c.bytes));
    if (c.value == kSigma && in_word && (text.empty() || !is_letter(decode_utf8(text).value))) {
      append_utf8(kFinalSigma, out);
    } else if (c.value == kDottedI) {
      out += "i\xCC\x87";  // i and a dot above
    } else {
      append_utf8(unicode() == nullptr ? c.value : towlower_l(c.value, unicode()), out);
    }
    in_word = is_letter(c.value);
  }
  return out;
}

}  // namespace runnel
