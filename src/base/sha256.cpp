#include "base/sha256.h"

// These functions are old, not going away, and do not ask which provider is meant: half the time for a key.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace lmemo {

struct Sha256::Context {
  SHA256_CTX state;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { SHA256_Init(&context_->state); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(Bytes bytes) { SHA256_Update(&context_->state, bytes.data(), bytes.size()); }

Digest Sha256::so_far() const {
  Sha256 copy;
  copy.context_->state = context_->state;
  return copy.finish();
}

Digest Sha256::finish() {
  Digest digest;
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.bytes.data()), &context_->state);
  SHA256_Init(&context_->state);
  return digest;
}

Digest sha256(Bytes bytes) { return sha256(bytes, {}); }

Digest sha256(Bytes first, Bytes rest) {
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, first.data(), first.size());
  SHA256_Update(&state, rest.data(), rest.size());
  Digest digest;
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.bytes.data()), &state);
  return digest;
}

}  // namespace lmemo
