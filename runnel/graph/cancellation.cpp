#include "runnel/graph/cancellation.h"

#include "runnel/base/format.h"

namespace runnel {

CancellationToken::CancellationToken() : cancelled_(std::make_shared<std::atomic<bool>>(false)) {}

CancellationScope::CancellationScope(const CancellationToken& token)
    : token_(token), outer_(thread_context().cancellation), scope_(this) {
  token_.cancelled();  // an Error now, not in what runs inside, where it was moved from
}
CancellationScope::~CancellationScope() = default;

void throw_cancelled(const std::string& where) {
  throw make_error(Code::cancelled, "the run was cancelled before node '{}'", where);
}

}  // namespace runnel
