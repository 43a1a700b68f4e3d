#include "base/sha256.h"

#include <doctest/doctest.h>

#include <string>

namespace lmemo {
namespace {

TEST_CASE("SHA-256 of the vectors of FIPS 180") {
  CHECK(sha256({}).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256(bytes_of("abc")).hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).hex() ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(bytes_of(std::string(1'000'000, 'a'))).hex() ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("in pieces it is the same, and afterwards it starts over") {
  Sha256 hash;
  hash.update(bytes_of("a"));
  hash.update({});
  hash.update(bytes_of("bc"));
  CHECK(hash.finish() == sha256(bytes_of("abc")));
  CHECK(hash.finish() == sha256({}));
  hash.update(bytes_of("x"));
  Sha256 moved = std::move(hash);
  CHECK(moved.finish() == sha256(bytes_of("x")));
}

}  // namespace
}  // namespace lmemo
