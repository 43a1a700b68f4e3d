#include "cli/commands/demo_fingerprints.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/sha256.h"

namespace lmemo::cli {
namespace {

using Fingerprint = std::array<char, kFingerprintBytes>;

bool is_word_byte(unsigned char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80; }

// The words, lower case, each followed by one space; and where each begins.
struct Words {
  std::string text;
  std::vector<size_t> begins;
};

Words words_of(std::string_view text) {
  Words words;
  bool is_inside = false;
  for (const char raw : text) {
    const char c = raw >= 'A' && raw <= 'Z' ? static_cast<char>(raw - 'A' + 'a') : raw;
    if (is_word_byte(static_cast<unsigned char>(c))) {
      if (!is_inside) words.begins.push_back(words.text.size());
      words.text += c;
      is_inside = true;
    } else if (is_inside) {
      words.text += ' ';
      is_inside = false;
    }
  }
  if (is_inside) words.text += ' ';
  return words;
}

}  // namespace

Result<Key> fingerprint_key(std::string_view text) {
  return Key::of("ngrams", {{"text", sha256(bytes_of(text))},
                            {"shortest", kShortestWindow},
                            {"longest", kLongestWindow},
                            {"recipe", "lower-case words, sha256/128, 1"}});
}

std::string fingerprints_of(std::string_view text) {
  const Words words = words_of(text);
  const size_t count = words.begins.size();
  std::vector<Fingerprint> found;
  Sha256 hasher;
  for (size_t first = 0; first < count; ++first) {
    for (size_t window = kShortestWindow; window <= kLongestWindow && first + window <= count; ++window) {
      const size_t end = first + window == count ? words.text.size() : words.begins[first + window];
      hasher.update(
          bytes_of(std::string_view(words.text).substr(words.begins[first], end - words.begins[first])));
      const Digest digest = hasher.finish();
      Fingerprint fingerprint;
      std::memcpy(fingerprint.data(), digest.bytes.data(), fingerprint.size());
      found.push_back(fingerprint);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::string value;
  value.reserve(found.size() * kFingerprintBytes);
  for (const Fingerprint& fingerprint : found) value.append(fingerprint.data(), fingerprint.size());
  return value;
}

}  // namespace lmemo::cli
