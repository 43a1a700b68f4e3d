// SHA-256, the one hash that identifies things. OpenSSL underneath (SHA-NI where the CPU has it).
#pragma once

#include <memory>

#include "lmemo/bytes.h"

namespace lmemo {

Digest sha256(Bytes bytes);
Digest sha256(Bytes first, Bytes rest);  // Of both, one after the other.

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(Bytes bytes);
  // Of what came so far; more may follow.
  Digest so_far() const;
  // Afterwards the object starts over.
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace lmemo
