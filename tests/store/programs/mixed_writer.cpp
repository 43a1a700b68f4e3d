// mixed_writer DIRECTORY WRITER THREADS KEYS ROUND [MAX_BYTES]: the load of mixed_load.h until it is killed.
// Says StepReturned after each step; an error ends it with a message and exit code 1.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "store/mixed_load.h"

using namespace lmemo;
using namespace lmemo::test;

namespace {

[[noreturn]] void fail(const char* doing, const Error& error) {
  std::fprintf(stderr, "mixed_writer: %s: %s\n", doing, error.describe().c_str());
  std::_Exit(1);
}

// True if something was erased.
bool carry_out(Store& store, const LoadShape& shape, const Step& step) {
  std::vector<Key> keys;
  std::vector<std::string> values;
  std::vector<Item> items;
  for (const uint32_t number : step.numbers) {
    keys.push_back(load_key(shape, number));
    values.push_back(versioned_value(keys.back(), step.version));
  }
  for (size_t i = 0; i < keys.size(); ++i) items.push_back({&keys[i], bytes_of(values[i])});
  switch (step.type) {
    case Step::Type::put:
      if (Status put = store.put(keys[0], bytes_of(values[0])); !put.ok()) fail("put", put.error());
      break;
    case Step::Type::put_many:
      if (Status put = store.put_many(items); !put.ok()) fail("put_many", put.error());
      break;
    case Step::Type::erase:
      if (Result<bool> erased = store.erase(keys[0]); !erased.ok())
        fail("erase", erased.error());
      else
        return *erased;
    case Step::Type::flush:
      if (Status flushed = store.flush(); !flushed.ok()) fail("flush", flushed.error());
      break;
  }
  return false;
}

}  // namespace

int main(int count, char** words) {
  if (count < 6) return 2;
  StoreOptions options;
  options.segment_bytes = 64 << 10;
  options.publish_seconds = 0.05;
  options.refresh_seconds = 0.002;
  options.max_bytes = count > 6 ? std::strtoull(words[6], nullptr, 10) : 0;
  Result<std::unique_ptr<Store>> store = open_store(words[1], options);
  if (!store.ok()) fail("open", store.error());

  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < static_cast<uint32_t>(std::atoi(words[3])); ++thread)
    threads.emplace_back([&, thread] {
      LoadShape shape;
      shape.writer = static_cast<uint32_t>(std::atoi(words[2]));
      shape.thread = thread;
      shape.keys = static_cast<uint32_t>(std::atoi(words[4]));
      shape.round = std::strtoull(words[5], nullptr, 10);
      for (uint32_t index = 0;; ++index) {
        const bool did_erase = carry_out(**store, shape, load_step(shape, index));
        const StepReturned returned{thread, index, did_erase};
        if (::write(STDOUT_FILENO, &returned, sizeof returned) != sizeof returned) std::_Exit(3);
      }
    });
  for (std::thread& thread : threads) thread.join();
}
