#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runnel/base/export.h"
#include "runnel/base/source_site.h"

namespace runnel {

// TensorFlow's (and gRPC's) canonical codes, same numbers.
enum class Code {
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
};

RUNNEL_API const char* code_name(Code code);  // "INVALID_ARGUMENT"

// Something an error passed through on its way to the caller, as data; its text tells the same.
struct ErrorFrame {
  enum class Kind {
    op,        // or a function of the API that is named like one
    node,      // of a graph
    layer,     // of a model
    function,  // the graph of a traced function
    file,
    call,  // of the library by the program: nothing but its line is known
  };
  Kind kind;
  std::string name;         // of the op, node, layer or function; the path of the file
  std::string type = {};    // the class of a layer, the op of a node
  std::string detail = {};  // what it was called with: "inputs a: float32[2,3], b: float32[4,5]"
  SourceSite where = {};    // the caller's line, where it is known
  int64_t offset = -1;      // in the file, in bytes; -1: not known
};

// The one exception type of the public API. The message names the op or file, the shapes or offset,
// and where it helps, what to do.
class RUNNEL_API Error : public std::runtime_error {
 public:
  // A message that begins with a name, "[MatMul] ...", has the frame of that op.
  Error(Code code, const std::string& message);
  Error(Code code, const std::string& message, std::vector<ErrorFrame> frames);

  Code code() const { return code_; }
  const std::vector<ErrorFrame>& frames() const;  // from the innermost
  bool has_frame(ErrorFrame::Kind kind) const;
  // This error as it looks from outside of the frame: the text says so too, except for functions and files, whose
  // messages name them already.
  Error inside(ErrorFrame frame) const;
  // The same error in other words.
  Error reworded(const std::string& message) const;

 private:
  Code code_;
  std::shared_ptr<const std::vector<ErrorFrame>> frames_;  // null: none. Shared, so that copies cannot fail
};

}  // namespace runnel
