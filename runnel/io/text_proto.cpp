#include "runnel/io/text_proto.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "runnel/base/format.h"

namespace runnel::io {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
bool is_octal(char c) { return c >= '0' && c <= '7'; }
int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::string text_proto_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '\t': out += "\\t"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '"': out += "\\\""; break;
      case '\'': out += "\\'"; break;
      case '\\': out += "\\\\"; break;
      default:
        if (c >= ' ' && c <= '~') {
          out += c;
        } else {
          out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        }
    }
  }
  return out + '"';
}

std::optional<std::string> TextProtoReader::field() {
  skip_space();
  if (at_ == text_.size()) return std::nullopt;
  const size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (at_ == begin) throw bad("the name of a field should stand here");
  std::string name(text_.substr(begin, at_ - begin));
  if (!accept(':')) throw bad(fmt::format("':' should follow '{}'", name));
  return name;
}

void TextProtoReader::values(FunctionRef<void()> read_one) {
  if (accept('[')) {
    if (!accept(']')) {
      do {
        read_one();
      } while (accept(','));
      if (!accept(']')) throw bad("']' should end the list");
    }
  } else {
    read_one();
  }
  if (!accept(',')) accept(';');
}

std::string TextProtoReader::string() {
  std::string text = quoted();
  while (true) {  // neighbours are one
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return text;
    text += quoted();
  }
}

std::string TextProtoReader::quoted() {
  skip_space();
  const char quote = at_ < text_.size() ? text_[at_] : '\0';
  if (quote != '"' && quote != '\'') throw bad("a text in quotes should stand here");
  ++at_;
  std::string out;
  while (true) {
    if (at_ == text_.size() || text_[at_] == '\n') throw bad("a text without an end");
    char c = text_[at_++];
    if (c == quote) return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at_ == text_.size()) throw bad("a text without an end");
    c = text_[at_++];
    constexpr std::string_view letters = "abfnrtv\\'\"?", meant = "\a\b\f\n\r\t\v\\'\"?";
    if (const size_t letter = letters.find(c); letter != std::string_view::npos) {
      out += meant[letter];
    } else if (is_octal(c)) {
      int value = c - '0';
      for (int i = 0; i < 2 && at_ < text_.size() && is_octal(text_[at_]); ++i)
        value = value * 8 + (text_[at_++] - '0');
      out += static_cast<char>(value);
    } else if (c == 'x' && at_ < text_.size() && hex_digit(text_[at_]) >= 0) {
      int value = hex_digit(text_[at_++]);
      if (at_ < text_.size() && hex_digit(text_[at_]) >= 0) value = value * 16 + hex_digit(text_[at_++]);
      out += static_cast<char>(value);
    } else {
      throw bad(fmt::format("an unknown escape '\\{}'", c));
    }
  }
}

double TextProtoReader::number() {
  skip_space();
  const size_t begin = at_;
  while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.' || text_[at_] == '-' || text_[at_] == '+')) {
    ++at_;
  }
  std::string_view word = text_.substr(begin, at_ - begin);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) {
    throw bad(fmt::format("'{}' is no number", word));
  }
  return value;
}

Error TextProtoReader::bad(const std::string& what) const {
  const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
  return make_error(Code::data_loss, "line {}: {}", line, what);
}

void TextProtoReader::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f') {
      ++at_;
    } else {
      return;
    }
  }
}

bool TextProtoReader::accept(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

}  // namespace runnel::io
