// The identity of an entry: a kind and named, typed fields, and the SHA-256 of their canonical encoding.
//
//   LMEMO_ASSIGN(const Key key, Key::of("tokens", {{"section", digest_of_text}, {"tokenizer", "gpt2@a1b2"}}));
//   store.put(key, value);
//
// Two keys are equal exactly if kind, names, types and values are equal. The order in which fields are given
// does not matter. 1, 1.0, true and "1" are four different values. docs/format.md ("Keys") has the encoding and
// golden vectors: it is the same on every machine, in every process and in every language.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lmemo/bytes.h"
#include "lmemo/result.h"

namespace lmemo {

inline constexpr size_t kMaxKindBytes = 64;
inline constexpr size_t kMaxFields = 64;
inline constexpr size_t kMaxFieldNameBytes = 64;
// A longer text or blob is kept as its length and SHA-256; it still counts in full for the identity.
inline constexpr size_t kMaxInlineValueBytes = 256;

struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};

// What stands for a text or blob too long to be kept.
struct LongValue {
  bool is_text = true;
  uint64_t byte_count = 0;
  Digest sha256;
  bool operator==(const LongValue&) const = default;
};

class FieldValue {
 public:
  using Variant = std::variant<std::monostate, bool, int64_t, double, std::string, Blob, LongValue>;

  FieldValue() = default;  // None.
  FieldValue(bool value) : value_(value) {}
  FieldValue(int value) : value_(int64_t{value}) {}
  FieldValue(int64_t value) : value_(value) {}
  FieldValue(double value) : value_(value) {}
  FieldValue(const char* text) : value_(std::string(text)) {}
  FieldValue(std::string_view text) : value_(std::string(text)) {}
  FieldValue(std::string text) : value_(std::move(text)) {}
  FieldValue(Blob blob) : value_(std::move(blob)) {}
  FieldValue(LongValue value) : value_(value) {}
  FieldValue(const Digest& digest) : value_(Blob{std::string(text_of(digest.bytes))}) {}

  const Variant& variant() const { return value_; }
  // For people: 42, 0.5, true, none, "text", 0xabcd…, text of 12,345 bytes (sha256 ab12…).
  std::string describe() const;
  // The same value after a trip through the store: long texts and blobs become their LongValue.
  FieldValue as_stored() const;

  bool operator==(const FieldValue&) const = default;

 private:
  Variant value_;
};

struct Field {
  std::string name;
  FieldValue value;
  bool operator==(const Field&) const = default;
};

class Key {
 public:
  // Refuses an empty or over-long kind or name, more than kMaxFields fields and a name given twice.
  static Result<Key> of(std::string_view kind, std::vector<Field> fields);
  // Reads a canonical encoding back. Everything else is refused: bytes from disk are hostile.
  static Result<Key> from_encoding(Bytes encoding);

  const Digest& digest() const { return digest_; }
  operator const Digest&() const { return digest_; }

  // The canonical encoding: what is hashed, and what is stored beside the entry.
  Bytes encoding() const { return bytes_of(encoding_); }
  std::string_view kind() const;
  // Sorted by name.
  std::vector<Field> fields() const;

  bool operator==(const Key& other) const { return digest_ == other.digest_; }

 private:
  Key(std::string encoding, const Digest& digest) : encoding_(std::move(encoding)), digest_(digest) {}

  std::string encoding_;
  Digest digest_;
};

}  // namespace lmemo
