#include "runnel/base/format.h"

#include <new>
#include <stdexcept>

namespace runnel {

Error current_error() {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return Error(Code::resource_exhausted, "there is not enough memory for what is computed on the way");
  } catch (const std::length_error&) {
    return Error(Code::resource_exhausted, "what is computed on the way is larger than any memory");
  }
}

std::string comma_separated(std::span<const int64_t> values) { return fmt::format("{}", fmt::join(values, ",")); }

}  // namespace runnel
