#include "base/claim_file.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_directory.h"

namespace lmemo {

TEST_CASE("what one claims another cannot, until it is released or its owner is gone") {
  const test::TempDirectory directory;
  auto one = ClaimFile::open(directory / "claims.lock");
  REQUIRE(one.ok());
  auto other = ClaimFile::open(directory / "claims.lock");
  REQUIRE(other.ok());
  const uint64_t largest = INT64_MAX;
  for (const uint64_t number : {uint64_t{0}, uint64_t{1} << 40, largest}) {
    CHECK(one->try_claim(number));
    CHECK(one->try_claim(number));
    CHECK_FALSE(other->try_claim(number));
    one->release(number);
    CHECK(other->try_claim(number));
    other->release(number);
  }
  CHECK(one->try_claim(100, 10));
  CHECK_FALSE(other->try_claim(109, 5));  // A part is enough.
  CHECK(other->try_claim(110, 5));
  one->release(100, 10);
  const pid_t child = ::fork();
  if (child == 0) {
    auto own = ClaimFile::open(directory / "claims.lock");
    ::_exit(own.ok() && own->try_claim(42) ? 7 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(one->try_claim(42));  // The dead hold nothing.
}

}  // namespace lmemo
