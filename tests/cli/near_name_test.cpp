#include "cli/near_name.h"

#include <doctest/doctest.h>

namespace lmemo::cli {
namespace {

const std::vector<std::string> kNames = {"show", "verify", "repair", "prune", "compact", "config"};

TEST_CASE("a slip of the finger finds the name") {
  CHECK(near_name("shwo", kNames) == "show");
  CHECK(near_name("sho", kNames) == "show");
  CHECK(near_name("verfy", kNames) == "verify");
  CHECK(near_name("comapct", kNames) == "compact");
  CHECK(near_name("conf", kNames) == "config");
}

TEST_CASE("what resembles nothing gets no suggestion") {
  CHECK(!near_name("", kNames));
  CHECK(!near_name("zebra", kNames));
  CHECK(!near_name(std::string(100'000, 'x'), kNames));
  CHECK(did_you_mean("zebra", kNames) == "");
  CHECK(did_you_mean("prun", kNames) == " Did you mean \"prune\"?");
}

}  // namespace
}  // namespace lmemo::cli
