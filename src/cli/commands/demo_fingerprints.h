// The work that `lmemo demo` shows: the word n-gram fingerprints by which training data is searched for the test sets
// of benchmarks ("decontamination"). A demonstration, not a feature.
#pragma once

#include <string>
#include <string_view>

#include "lmemo/key.h"
#include "lmemo/result.h"

namespace lmemo::cli {

inline constexpr int kShortestWindow = 5;
inline constexpr int kLongestWindow = 13;
inline constexpr size_t kFingerprintBytes = 16;

// Everything that changes the fingerprints is in the key; the name and the place of the file are not.
Result<Key> fingerprint_key(std::string_view text);

// One fingerprint for every window of 5 to 13 words, lower case, letters and digits only: SHA-256 cut to 128 bits.
// Sorted, without duplicates.
std::string fingerprints_of(std::string_view text);

}  // namespace lmemo::cli
