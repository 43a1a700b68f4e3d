// power_cut_checker DIRECTORY KEYS ROUND: checks a store after a power cut against the load of mixed_load.h. Standard
// input has a line for each thread of each writer:
//   WRITER THREAD ACKNOWLEDGED ERASED
// ACKNOWLEDGED: so many steps had returned before the cut. ERASED: a 0 or 1 for each step that ever returned, also later:
// whether it erased something. Prints "checked N flushed entries, M others".
//
// Promise 3: for each key, what the last flush before the cut made durable, or whatever came later.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <set>

#include "store/mixed_load.h"

using namespace lmemo;
using namespace lmemo::test;

namespace {

constexpr uint64_t kAbsent = 0;

[[noreturn]] void fail(const std::string& what) {
  std::cerr << "power_cut_checker: " << what << "\n";
  std::exit(1);
}

struct Expectation {
  std::vector<std::set<uint64_t>> allowed;
  std::set<uint32_t> flushed;
};

Expectation expect(const LoadShape& shape, size_t acknowledged, const std::string& erased) {
  Expectation result{std::vector<std::set<uint64_t>>(shape.keys, {kAbsent}), {}};
  std::vector<uint64_t> now(shape.keys, kAbsent);
  std::set<uint32_t> touched;
  for (uint32_t index = 0; index <= erased.size(); ++index) {
    const Step step = load_step(shape, index);
    if (step.type == Step::Type::flush && index < acknowledged) {
      for (uint32_t number = 0; number < shape.keys; ++number) result.allowed[number] = {now[number]};
      result.flushed = touched;
    }
    for (const uint32_t number : step.numbers) {
      const bool found_nothing =
          step.type == Step::Type::erase && index < erased.size() && erased[index] == '0';
      if (!found_nothing) now[number] = step.type == Step::Type::erase ? kAbsent : step.version;
      result.allowed[number].insert(now[number]);
      touched.insert(number);
    }
  }
  return result;
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  StoreOptions options;
  options.max_bytes = 0;
  options.create = false;
  options.on_notice = [](const Notice& notice) { fail("notice: " + notice.message); };
  Result<std::unique_ptr<Store>> store = open_store(words[1], options);

  uint64_t flushed = 0, others = 0;
  LoadShape shape;
  shape.keys = static_cast<uint32_t>(std::atoi(words[2]));
  shape.round = std::strtoull(words[3], nullptr, 10);
  size_t acknowledged = 0;
  std::string erased;
  while (std::cin >> shape.writer >> shape.thread >> acknowledged >> erased) {
    if (erased == "-") erased.clear();
    const Expectation expectation = expect(shape, acknowledged, erased);
    for (uint32_t number = 0; number < shape.keys; ++number) {
      const Key key = load_key(shape, number);
      const std::optional<Hit> hit = store.ok() ? (*store)->find(key) : std::nullopt;
      uint64_t version = kAbsent;
      if (hit) {
        const std::optional<uint64_t> told = version_in(key, hit->value());
        if (!told) fail("a wrong byte");
        version = *told;
      }
      if (!expectation.allowed[number].contains(version))
        fail("writer " + std::to_string(shape.writer) + " thread " + std::to_string(shape.thread) + " key " +
             std::to_string(number) + ": found version " + std::to_string(version & 0xffffffff) +
             ", expected " + std::to_string(*expectation.allowed[number].begin() & 0xffffffff) + " or later");
      ++(expectation.flushed.contains(number) ? flushed : others);
    }
  }
  if (store.ok()) {
    const Result<VerifyReport> verified = (*store)->verify();
    if (!verified.ok()) fail("verify: " + verified.error().describe());
    for (const Damage& damage : verified->damage) fail("damage: " + damage.file + ": " + damage.what);
    const Result<RepairReport> repaired = (*store)->repair();
    if (!repaired.ok()) fail("repair: " + repaired.error().describe());
    if (!(*store)->verify()->is_clean()) fail("not clean after repair");
  }
  std::printf("checked %llu flushed entries, %llu others\n", static_cast<unsigned long long>(flushed),
              static_cast<unsigned long long>(others));
}
