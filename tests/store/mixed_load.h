// A load of puts, overwrites, erasures and flushes that the writer and the checker make from the same seed: the writer
// only says how far it came, and the checker knows what must be there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lmemo/store.h"
#include "support/versioned_value.h"

namespace lmemo::test {

struct LoadShape {
  uint32_t writer = 0, thread = 0;
  uint32_t keys = 40;  // Of this thread alone, so that the order of its steps is the order of its records.
  uint64_t round = 1;  // Versions of a later round are higher.
};

struct Step {
  enum class Type : uint8_t { put, put_many, erase, flush };
  Type type = Type::put;
  std::vector<uint32_t> numbers;  // Of keys; distinct.
  uint64_t version = 0;
};

inline Key load_key(const LoadShape& shape, uint32_t number) {
  static const char* const kKinds[] = {"tokens", "forward", "activation"};
  return *Key::of(kKinds[number % 3], {{"writer", int(shape.writer)},
                                       {"thread", int(shape.thread)},
                                       {"number", int(number)},
                                       {"model", "gpt2@a1b2"}});
}

inline Step load_step(const LoadShape& shape, uint32_t index) {
  Dice dice(mixed(mixed(shape.round, shape.writer * 64 + shape.thread), index));
  Step step;
  step.version = shape.round << 32 | (index + 1);
  const uint64_t choice = dice.below(100);
  if (choice < 60) {
    step.type = Step::Type::put;
  } else if (choice < 72) {
    step.type = Step::Type::put_many;
  } else if (choice < 88) {
    step.type = Step::Type::erase;
  } else {
    step.type = Step::Type::flush;
    return step;
  }
  const uint64_t count =
      step.type == Step::Type::put_many ? 2 + dice.below(std::min<uint64_t>(shape.keys, 100) - 1) : 1;
  const uint32_t first = static_cast<uint32_t>(dice.below(shape.keys));
  for (uint32_t i = 0; i < count; ++i) step.numbers.push_back((first + i) % shape.keys);
  return step;
}

// What a writer says after each step returned ok, in one write() that a pipe does not tear.
struct StepReturned {
  uint32_t thread;
  uint32_t index;
  uint32_t did_erase;  // An erasure that found nothing leaves no record.
};

}  // namespace lmemo::test
