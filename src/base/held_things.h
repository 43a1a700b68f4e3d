// Things that live as long as somebody holds them, for readers who take and drop them millions of times a second.
//
//   const uint32_t thing = held_things::add(object);   // the owner
//   Hold hold(thing);                                  // readers, while they know that it cannot be let go
//   held_things::let_go(thing);                        // the owner; freed now, or by the last hold
//
// A thread counts in its own lane what it took and what it dropped; a Hold may be dropped by another thread than
// the one that took it. A thing that its owner let go is free when all lanes together dropped as often as they took. Whoever adds up
// reads all `dropped` before all `taken`: a drop that it sees comes after its take, so the sums can only be equal when nobody
// holds the thing.
#pragma once

#include <cstdint>
#include <memory>

#include "base/thread_lanes.h"
#include "lmemo/hold.h"

namespace lmemo::held_things {

// 0 if there are too many (a million).
uint32_t add(std::shared_ptr<const void> object);
// Requires: nobody takes it any more but by copying a Hold.
void let_go(uint32_t thing);

// What all threads together have in the `tallies` of a thing: two counts for whatever its owner likes to count. A thread
// adds to its own while it holds the thing.
uint64_t total(uint32_t thing, size_t which);

// Whoever has handlers around fork() and holds a lock while calling these registers them after this.
void prepare_for_fork();

}  // namespace lmemo::held_things
