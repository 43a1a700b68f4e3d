// maintainer DIRECTORY MODE: does one kind of upkeep over and over until it is killed.
//   compact          nothing may be lost by it
//   evict BYTES, prune SECONDS
//   reopen           opens, repairs, closes: takes over what dead writers left
// An error ends it with a message and exit code 1.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "lmemo/store.h"

using namespace lmemo;

namespace {

std::unique_ptr<Store> open_or_exit(const char* directory) {
  StoreOptions options;
  options.max_bytes = 0;
  options.segment_bytes = 64 << 10;
  Result<std::unique_ptr<Store>> store = open_store(directory, options);
  if (store.ok()) return std::move(*store);
  std::fprintf(stderr, "maintainer: open: %s\n", store.error().describe().c_str());
  std::_Exit(1);
}

template <typename Report>
void expect(const char* mode, const Result<Report>& report) {
  // Somebody else may do the same for longer than we wait.
  if (report.ok() || report.error().code == ErrorCode::busy) return;
  std::fprintf(stderr, "maintainer: %s: %s\n", mode, report.error().describe().c_str());
  std::_Exit(1);
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const char* const mode = words[2];
  const double amount = count > 3 ? std::atof(words[3]) : 0;
  std::unique_ptr<Store> store = open_or_exit(words[1]);
  for (;;) {
    if (std::strcmp(mode, "compact") == 0) expect(mode, store->compact());
    if (std::strcmp(mode, "evict") == 0) expect(mode, store->evict(static_cast<uint64_t>(amount)));
    if (std::strcmp(mode, "prune") == 0) expect(mode, store->prune(amount));
    if (std::strcmp(mode, "reopen") == 0) {
      expect(mode, store->repair());
      store.reset();
      store = open_or_exit(words[1]);
    }
  }
}
