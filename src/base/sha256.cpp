#include "base/sha256.h"

#include <openssl/evp.h>

#include <cassert>

namespace lmemo {
namespace {

// Fetched once: looking the algorithm up again at every call costs more than hashing 64 bytes does.
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return fetched;
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(handle); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  [[maybe_unused]] const int ok = EVP_DigestInit_ex2(context_->handle, algorithm(), nullptr);
  assert(ok == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(Bytes bytes) {
  [[maybe_unused]] const int ok = EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size());
  assert(ok == 1);
}

Digest Sha256::so_far() const {
  Sha256 copy;
  [[maybe_unused]] const int ok = EVP_MD_CTX_copy_ex(copy.context_->handle, context_->handle);
  assert(ok == 1);
  return copy.finish();
}

Digest Sha256::finish() {
  Digest digest;
  [[maybe_unused]] int ok =
      EVP_DigestFinal_ex(context_->handle, reinterpret_cast<unsigned char*>(digest.bytes.data()), nullptr);
  assert(ok == 1);
  // A null type keeps the algorithm and skips the fetch.
  ok = EVP_DigestInit_ex2(context_->handle, nullptr, nullptr);
  assert(ok == 1);
  return digest;
}

Digest sha256(Bytes bytes) {
  // A context per thread, reused: 200 ns for 64 bytes instead of 450–850.
  thread_local Sha256 hasher;
  hasher.update(bytes);
  return hasher.finish();
}

}  // namespace lmemo
