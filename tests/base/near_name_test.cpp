#include "base/near_name.h"

#include <doctest/doctest.h>

namespace lmemo {
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

TEST_CASE("one slip is a mistyped name, two are another name") {
  const std::vector<std::string> names = {"max_length", "seed"};
  CHECK(mistyped_name("max_lenght", names) == "max_length");
  CHECK(mistyped_name("sed", names) == "seed");
  CHECK(!mistyped_name("seed", names));
  CHECK(!mistyped_name("max_steps", names));
  CHECK(!mistyped_name("speeds", names));
  CHECK(!mistyped_name(std::string(100'000, 'x'), names));
}

}  // namespace
}  // namespace lmemo
