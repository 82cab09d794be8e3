#include "runnel/base/md5.h"

#include <openssl/evp.h>

#include <array>

#include "runnel/base/format.h"

namespace runnel {

std::string md5_file(Env& env, const std::string& path) {
  const std::unique_ptr<MappedFile> file = env.map(path);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(file->bytes().data(), file->bytes().size(), digest.data(), &size, EVP_md5(), nullptr) != 1) {
    throw Error(Code::internal, "[md5] the cryptographic library failed");
  }
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace runnel
