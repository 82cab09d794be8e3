#include "runnel/graph/executor/cancellation.h"

#include "runnel/base/format.h"

namespace runnel {
namespace {

thread_local const CancellationScope* innermost = nullptr;

}  // namespace

CancellationScope::CancellationScope(const CancellationToken& token) : token_(token), outer_(innermost) {
  innermost = this;
}
CancellationScope::~CancellationScope() { innermost = outer_; }

const CancellationScope* CancellationScope::current() { return innermost; }

CancellationGuest::CancellationGuest(const CancellationScope* scope) : before_(innermost) { innermost = scope; }
CancellationGuest::~CancellationGuest() { innermost = before_; }

void throw_cancelled(const std::string& where) {
  throw make_error(Code::cancelled, "the run was cancelled before node '{}'", where);
}

}  // namespace runnel
