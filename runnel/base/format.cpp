#include "runnel/base/format.h"

#include <new>
#include <stdexcept>

namespace runnel {

Error current_error(bool of_program) {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc& e) {
    if (of_program) throw;
    return make_error(Code::resource_exhausted, "there is not enough memory for what is computed on the way ({})",
                      e.what());
  } catch (const std::length_error& e) {
    if (of_program) throw;
    return make_error(Code::resource_exhausted, "what is computed on the way is larger than any memory ({})", e.what());
  }
}

std::string comma_separated(std::span<const int64_t> values) { return fmt::format("{}", fmt::join(values, ",")); }

}  // namespace runnel
