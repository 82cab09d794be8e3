#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel::io {

struct CsvOptions {
  char delimiter = ',';
  bool quotes = true;  // fields in double quotes may hold delimiters and line ends; "" inside is one quote
};

// One record of a CSV file, as RFC 4180 and TensorFlow read it. `fields` is filled anew: views into `record` or, where
// quotes had to be undone, into `storage`. A trailing line end is dropped. Throws Error (invalid_argument) with the
// column and byte for misplaced quotes.
RUNNEL_API void split_csv(std::string_view record, const CsvOptions& options, std::vector<std::string_view>& fields,
                          std::vector<std::string>& storage, SourceSite where = SourceSite::current());

// Where the record that begins at `begin` ends: behind its line end (or at the end of the text). Line ends inside
// quotes do not count.
RUNNEL_API size_t csv_record_end(std::string_view text, size_t begin, const CsvOptions& options);

}  // namespace runnel::io
