#include <cstdint>
#include <cstdlib>

#include "runnel/base/error.h"
#include "runnel/io/csv.h"

// Text as records of CSV: the ends rise to the end of the text, and fields written back with quotes are the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace runnel::io;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (bool quotes : {true, false}) {
    const CsvOptions options{.delimiter = ',', .quotes = quotes};
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = csv_record_end(text, begin, options);
      if (end <= begin || end > text.size()) std::abort();
      std::vector<std::string_view> fields, again;
      std::vector<std::string> storage, more;
      try {
        split_csv(text.substr(begin, end - begin), options, fields, storage);
      } catch (const runnel::Error&) {
        begin = end;
        continue;
      }
      std::string line;
      for (std::string_view field : fields) {
        line += line.empty() ? "\"" : ",\"";
        for (char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
        line += '"';
      }
      split_csv(line, {}, again, more);
      if (again != fields) std::abort();
      begin = end;
    }
  }
  return 0;
}
