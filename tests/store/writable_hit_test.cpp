// Values that whoever found them may write to, without a copy and without harm.
#include <doctest/doctest.h>

#include <cstring>

#include "lmemo/store.h"
#include "support/store_support.h"
#include "support/temp_directory.h"

using namespace lmemo;
using namespace lmemo::test;

namespace {

Key number(int n) { return *Key::of("numbers", {{"n", n}}); }

std::unique_ptr<Store> opened(const TempDirectory& directory) {
  StoreOptions options;
  options.refresh_seconds = 0;
  Result<std::unique_ptr<Store>> store = open_store(directory / "store", options);
  REQUIRE(store.ok());
  return std::move(*store);
}

std::string found(Store& store, int n) {
  const std::optional<Hit> hit = store.find(number(n).digest());
  return hit ? std::string(text_of(hit->value())) : "";
}

std::string own_text(const WritableHit& hit) {
  return {reinterpret_cast<const char*>(hit.own.data()), hit.hit.value().size()};
}

}  // namespace

TEST_CASE("what is written through a writable hit changes neither the file nor what others find") {
  const TempDirectory directory;
  const auto store = opened(directory);
  for (int n = 0; n < 3; ++n) REQUIRE(store->put(number(n), bytes_of("untouched")).ok());
  // Not published yet: its file still grows.
  CHECK(store->find_writable(number(1).digest())->own.data() == nullptr);
  REQUIRE(store->flush().ok());
  {
    const auto hit = store->find_writable(number(1).digest());
    REQUIRE(hit);
    REQUIRE(hit->own.data() != nullptr);
    CHECK(own_text(*hit) == "untouched");
    std::memcpy(hit->own.data(), "scribbled", 9);
    CHECK(own_text(*hit) == "scribbled");
    for (int n = 0; n < 3; ++n) CHECK(found(*store, n) == "untouched");
    CHECK(own_text(*store->find_writable(number(0).digest())) == "untouched");  // In the same page.
    CHECK(own_text(*store->find_writable(number(2).digest())) == "untouched");
    CHECK(store->find_writable(number(1).digest())->own.data() == nullptr);  // One holder at a time.
    CHECK(found(*opened(directory), 1) == "untouched");
  }
  CHECK(own_text(*store->find_writable(number(1).digest())) == "untouched");
  CHECK(store->verify()->is_clean());
  CHECK_FALSE(store->find_writable(number(9).digest()));
}

TEST_CASE("a writable hit stays valid whatever happens to the store") {
  const TempDirectory directory;
  auto store = opened(directory);
  const std::string value(10'000, 'v'), scribbled(10'000, 's');
  for (int n = 0; n < 20; ++n) REQUIRE(store->put(number(n), bytes_of(value)).ok());
  REQUIRE(store->flush().ok());
  std::vector<WritableHit> hits;
  for (int n = 0; n < 20; n += 2) {
    hits.push_back(*store->find_writable(number(n).digest()));
    REQUIRE(hits.back().own.data() != nullptr);
    std::memset(hits.back().own.data(), 's', value.size());
  }
  const auto are_right = [&] {
    return std::all_of(hits.begin(), hits.end(), [&](const WritableHit& hit) {
      return own_text(hit) == scribbled && text_of(hit.hit.value()) == value;
    });
  };
  for (int n = 1; n < 20; n += 2) REQUIRE(store->erase(number(n).digest()).ok());
  REQUIRE(store->compact().ok());
  CHECK(are_right());
  // In its new segment, which nobody holds.
  CHECK(own_text(*store->find_writable(number(0).digest())) == value);
  REQUIRE(store->evict(0).ok());
  CHECK(are_right());
  REQUIRE(store->clear().ok());
  CHECK(are_right());
  store.reset();
  CHECK(are_right());
  std::filesystem::remove_all(directory / "store");
  CHECK(are_right());
}

TEST_CASE("a memory store lends nothing to write to") {
  const auto store = make_memory_store();
  REQUIRE(store->put(number(1), bytes_of("value")).ok());
  const auto hit = store->find_writable(number(1).digest());
  REQUIRE(hit);
  CHECK(hit->own.data() == nullptr);
  CHECK(text_of(hit->hit.value()) == "value");
}
