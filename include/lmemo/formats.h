// Versions of what lmemo writes. A reader refuses what is newer and says so; docs/format.md, "Versions", tells which
// older ones it reads.
#pragma once

#include <cstdint>

namespace lmemo {

inline constexpr uint32_t kFormatVersion = 1;     // Segments: entries of a store, chunks of rows.
inline constexpr uint32_t kKeyFormatVersion = 1;  // The canonical encoding of keys.

}  // namespace lmemo
