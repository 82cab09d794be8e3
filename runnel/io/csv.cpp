#include "runnel/io/csv.h"

#include "runnel/base/caller_line.h"
#include "runnel/base/format.h"

namespace runnel::io {
namespace {

// The text between quotes, from behind the opening one; at the end `at` stands behind the closing one.
std::string_view quoted_field(std::string_view record, size_t& at, size_t column, std::vector<std::string>& storage) {
  const size_t begin = at;
  std::string plain;
  bool copied = false;
  size_t from = at;
  while (true) {
    const size_t quote = record.find('"', at);
    if (quote == std::string_view::npos) {
      throw invalid_argument("field {} opens a quote at byte {} that is never closed", column, begin - 1);
    }
    at = quote + 1;
    if (at == record.size() || record[at] != '"') {
      if (!copied) return record.substr(begin, quote - begin);
      plain += record.substr(from, quote - from);
      storage.push_back(std::move(plain));
      return storage.back();
    }
    plain += record.substr(from, at - from);  // with one of the two quotes
    copied = true;
    from = ++at;
  }
}

}  // namespace

void split_csv(std::string_view record, const CsvOptions& options, std::vector<std::string_view>& fields,
               std::vector<std::string>& storage, SourceSite where) {
  at_caller(where, [&] {
    fields.clear();
    storage.clear();
    if (record.ends_with('\n')) record.remove_suffix(1);
    if (record.ends_with('\r')) record.remove_suffix(1);
    storage.reserve(1 + record.size() / 4);  // "", at least: views into it must stay where they are
    size_t at = 0;
    while (true) {
      if (options.quotes && at < record.size() && record[at] == '"') {
        const size_t begin = ++at;
        fields.push_back(quoted_field(record, at, fields.size(), storage));
        if (at < record.size() && record[at] != options.delimiter) {
          throw invalid_argument("field {}, quoted from byte {} on, goes on behind its closing quote at byte {}",
                                 fields.size() - 1, begin - 1, at);
        }
      } else {
        size_t end = record.find(options.delimiter, at);
        if (end == std::string_view::npos) end = record.size();
        const std::string_view field = record.substr(at, end - at);
        if (options.quotes) {
          if (const size_t bad = field.find_first_of("\"\r\n"); bad != std::string_view::npos) {
            throw invalid_argument("field {} is not quoted, but has a quote or line end at byte {}", fields.size(),
                                   at + bad);
          }
        }
        fields.push_back(field);
        at = end;
      }
      if (at >= record.size()) return;
      ++at;  // the delimiter; behind the last one stands an empty field
    }
  });
}

size_t csv_record_end(std::string_view text, size_t begin, const CsvOptions& options) {
  if (!options.quotes) {
    const size_t end = text.find('\n', begin);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  bool inside = false;
  for (size_t i = begin; i < text.size(); ++i) {
    if (text[i] == '"') inside = !inside;
    if (text[i] == '\n' && !inside) return i + 1;
  }
  return text.size();
}

}  // namespace runnel::io
