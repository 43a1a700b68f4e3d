// The canonical encoding of keys: docs/format.md, "Keys". Changing a byte here changes every identity.
#include "lmemo/key.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/hex.h"
#include "base/little_endian.h"
#include "base/sha256.h"

namespace lmemo {

Digest digest_of_key(std::string_view encoding) {
  constexpr std::string_view kPrefix = "lmemo key 1\n";
  return sha256(bytes_of(kPrefix), bytes_of(encoding));
}

namespace {

constexpr uint64_t kCanonicalNan = 0x7ff8000000000000;

enum class Type : uint8_t { none, boolean, integer, real, text, blob, long_text, long_blob };

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error damaged(std::string message) { return {ErrorCode::corruption, "key encoding: " + std::move(message)}; }

bool is_kind(std::string_view kind) {
  return !kind.empty() && kind.size() <= kMaxKindBytes &&
         kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string_view::npos;
}

bool is_field_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxFieldNameBytes && name.find('\0') == std::string_view::npos;
}

std::string long_value(uint64_t byte_count, const Digest& digest) {
  std::string value;
  append_le(value, byte_count);
  value += text_of(digest.bytes);
  return value;
}

struct Encoder {
  std::string& out;

  void add(Type type, std::string_view value) const {
    out += static_cast<char>(type);
    append_le(out, static_cast<uint32_t>(value.size()));
    out += value;
  }
  void add_long(bool is_text, uint64_t byte_count, const Digest& digest) const {
    add(is_text ? Type::long_text : Type::long_blob, long_value(byte_count, digest));
  }
  void add_text(Type type, std::string_view value) const {
    if (value.size() <= kMaxInlineValueBytes) return add(type, value);
    add_long(type == Type::text, value.size(), sha256(bytes_of(value)));
  }
  template <typename T>
  void add_fixed(Type type, T value) const {
    add(type, {reinterpret_cast<const char*>(&value), sizeof value});
  }

  void operator()(std::monostate) const { add(Type::none, {}); }
  void operator()(bool value) const { add_fixed(Type::boolean, static_cast<uint8_t>(value)); }
  void operator()(int64_t value) const { add_fixed(Type::integer, value); }
  void operator()(double value) const {
    add_fixed(Type::real, std::isnan(value) ? kCanonicalNan : std::bit_cast<uint64_t>(value));
  }
  void operator()(const std::string& value) const { add_text(Type::text, value); }
  void operator()(const Blob& value) const { add_text(Type::blob, value.bytes); }
  void operator()(const LongValue& value) const { add_long(value.is_text, value.byte_count, value.sha256); }
};

Result<FieldValue> decode_value(uint8_t type, std::string_view value) {
  const auto has_size = [&](size_t size) { return value.size() == size; };
  switch (static_cast<Type>(type)) {
    case Type::none:
      if (has_size(0)) return FieldValue();
      break;
    case Type::boolean:
      if (has_size(1) && static_cast<uint8_t>(value[0]) <= 1) return FieldValue(value[0] == 1);
      break;
    case Type::integer:
      if (has_size(8)) return FieldValue(load_le<int64_t>(value.data()));
      break;
    case Type::real:
      if (has_size(8)) {
        const double real = load_le<double>(value.data());
        if (std::isnan(real) && load_le<uint64_t>(value.data()) != kCanonicalNan) break;
        return FieldValue(real);
      }
      break;
    case Type::text:
      if (value.size() <= kMaxInlineValueBytes) return FieldValue(value);
      break;
    case Type::blob:
      if (value.size() <= kMaxInlineValueBytes) return FieldValue(Blob{std::string(value)});
      break;
    case Type::long_text:
    case Type::long_blob:
      if (has_size(40)) {
        LongValue result;
        result.is_text = static_cast<Type>(type) == Type::long_text;
        result.byte_count = load_le<uint64_t>(value.data());
        std::memcpy(result.sha256.bytes.data(), value.data() + 8, 32);
        if (result.byte_count > kMaxInlineValueBytes) return FieldValue(result);
      }
      break;
  }
  return damaged("value of type " + std::to_string(type) + " with " + std::to_string(value.size()) +
                 " bytes");
}

// Reads fixed and counted pieces off the front; nothing past the end.
class Cursor {
 public:
  explicit Cursor(std::string_view rest) : rest_(rest) {}
  bool take(size_t count, std::string_view& piece) {
    if (rest_.size() < count) return false;
    piece = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  template <typename T>
  bool take_le(T& value) {
    std::string_view piece;
    if (!take(sizeof value, piece)) return false;
    value = load_le<T>(piece.data());
    return true;
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

struct Decoded {
  std::string_view kind;
  std::vector<Field> fields;
};

Result<Decoded> decode(std::string_view encoding) {
  Cursor cursor(encoding);
  Decoded decoded;
  uint8_t kind_bytes;
  uint16_t field_count;
  if (!cursor.take_le(kind_bytes) || !cursor.take(kind_bytes, decoded.kind) || !is_kind(decoded.kind))
    return damaged("kind is cut off or not a kind");
  if (!cursor.take_le(field_count) || field_count > kMaxFields) return damaged("field count");
  std::string_view previous;
  for (unsigned i = 0; i < field_count; ++i) {
    uint8_t name_bytes, type;
    uint32_t value_bytes;
    std::string_view name, value;
    if (!cursor.take_le(name_bytes) || !cursor.take(name_bytes, name) || !is_field_name(name))
      return damaged("field name is cut off or not a name");
    if (i > 0 && name <= previous) return damaged("fields are not in order");
    if (!cursor.take_le(type) || !cursor.take_le(value_bytes) || !cursor.take(value_bytes, value))
      return damaged("field is cut off");
    LMEMO_ASSIGN(FieldValue field_value, decode_value(type, value));
    decoded.fields.push_back({std::string(name), std::move(field_value)});
    previous = name;
  }
  if (!cursor.is_at_end()) return damaged("bytes after the last field");
  return decoded;
}

std::string describe_long(const LongValue& value) {
  return std::string(value.is_text ? "text" : "bytes") + " of " + std::to_string(value.byte_count) +
         " bytes (sha256 " + value.sha256.hex().substr(0, 12) + "…)";
}

struct Describer {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    // 1.0 is not 1: they are two keys.
    const bool looks_whole =
        std::string_view(text).find_first_not_of("-0123456789") == std::string_view::npos;
    return looks_whole ? std::string(text) + ".0" : text;
  }
  std::string operator()(const std::string& value) const { return '"' + value + '"'; }
  std::string operator()(const Blob& value) const { return "0x" + to_hex(bytes_of(value.bytes)); }
  std::string operator()(const LongValue& value) const { return describe_long(value); }
};

}  // namespace

std::string FieldValue::describe() const { return std::visit(Describer{}, value_); }

FieldValue FieldValue::as_stored() const {
  std::string encoded;
  std::visit(Encoder{encoded}, value_);
  Result<FieldValue> decoded =
      decode_value(static_cast<uint8_t>(encoded[0]), std::string_view(encoded).substr(1 + sizeof(uint32_t)));
  assert(decoded.ok());
  return std::move(decoded).value();
}

Result<Key> Key::of(std::string_view kind, std::vector<Field> fields) {
  if (!is_kind(kind))
    return invalid("kind \"" + std::string(kind) + "\": expected 1 to 64 of a-z, 0-9, '.', '_' and '-'");
  if (fields.size() > kMaxFields)
    return invalid("key of kind " + std::string(kind) + ": " + std::to_string(fields.size()) +
                   " fields, at most 64; digest some of them into one");
  std::sort(fields.begin(), fields.end(), [](const Field& a, const Field& b) { return a.name < b.name; });

  std::string encoding(1, static_cast<char>(kind.size()));
  encoding += kind;
  append_le(encoding, static_cast<uint16_t>(fields.size()));
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i].name;
    if (!is_field_name(name))
      return invalid("field name \"" + name + "\": expected 1 to 64 bytes without NUL");
    if (i > 0 && name == fields[i - 1].name) return invalid("field \"" + name + "\" is given twice");
    const LongValue* given = std::get_if<LongValue>(&fields[i].value.variant());
    if (given && given->byte_count <= kMaxInlineValueBytes)
      return invalid("field \"" + name + "\": a value of " + std::to_string(given->byte_count) +
                     " bytes is given as a digest; give it as it is");
    encoding += static_cast<char>(name.size());
    encoding += name;
    std::visit(Encoder{encoding}, fields[i].value.variant());
  }
  const Digest digest = digest_of_key(encoding);
  return Key(std::move(encoding), digest);
}

Result<Key> Key::from_encoding(Bytes encoding) {
  LMEMO_ASSIGN([[maybe_unused]] const Decoded decoded, decode(text_of(encoding)));
  std::string owned(text_of(encoding));
  const Digest digest = digest_of_key(owned);
  return Key(std::move(owned), digest);
}

std::string_view Key::kind() const {
  return std::string_view(encoding_).substr(1, static_cast<uint8_t>(encoding_[0]));
}

std::vector<Field> Key::fields() const {
  Result<Decoded> decoded = decode(encoding_);
  assert(decoded.ok());
  return std::move(decoded->fields);
}

}  // namespace lmemo
