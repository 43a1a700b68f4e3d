// How many different things were asked for since the last time this one was: what decides whether an LRU cache of a given size hits.
// One pass gives the hit rate of every size (Mattson and others, 1970).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lmemo {

// `calls` are numbers from 0 to call_count - 1, in the order of the lookups. Element d of the result is the number of lookups that hit in a cache of
// d + 1 entries and in none smaller.
std::vector<uint64_t> hits_by_cache_size(const std::vector<uint32_t>& calls, uint32_t call_count);

}  // namespace lmemo
