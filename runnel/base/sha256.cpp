#include "runnel/base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <vector>

#include "runnel/base/format.h"

namespace runnel {

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

namespace {
void require(int ok) {
  if (ok != 1) throw Error(Code::internal, "[sha256] the cryptographic library failed");
}
}  // namespace

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(state_->context != nullptr ? 1 : 0);
  require(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::update(ByteSpan bytes) { require(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size())); }

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  require(EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr));
  std::string text;
  for (unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(ByteSpan bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.hex();
}

std::string sha256_file(Env& env, const std::string& path) {
  std::unique_ptr<SequentialFile> file = env.open_sequential(path);
  std::vector<std::byte> chunk(1 << 18);
  Sha256 sha;
  size_t n = chunk.size();
  while (n == chunk.size()) {
    n = file->read(chunk);
    sha.update(ByteSpan(chunk).first(n));
  }
  return sha.hex();
}

}  // namespace runnel
