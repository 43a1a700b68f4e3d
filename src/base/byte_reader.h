// Takes bytes that somebody else wrote apart, from front to back. Past the end everything is 0 or empty and ok() is
// false: a parser reads what it expects and asks once.
//
//   ByteReader reader(value);
//   const auto count = reader.read<uint32_t>();
//   if (!reader.has(count * sizeof(Entry))) return damaged();   // Before memory is taken.
#pragma once

#include "base/little_endian.h"
#include "lmemo/bytes.h"

namespace lmemo {

class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool is_at_end() const { return ok_ && rest_.empty(); }
  size_t left() const { return rest_.size(); }
  bool has(uint64_t byte_count) const { return ok_ && byte_count <= rest_.size(); }

  Bytes take(uint64_t byte_count) {
    if (!has(byte_count)) {
      ok_ = false;
      return {};
    }
    const Bytes taken = rest_.first(byte_count);
    rest_ = rest_.subspan(byte_count);
    return taken;
  }
  template <typename T>
  T read() {
    const Bytes bytes = take(sizeof(T));
    return bytes.empty() ? T{} : load_le<T>(bytes.data());
  }
  // A u32 length and so many bytes.
  std::string_view text() { return text_of(take(read<uint32_t>())); }

 private:
  Bytes rest_;
  bool ok_ = true;
};

inline void append_text(std::string& to, std::string_view text) {
  append_le(to, static_cast<uint32_t>(text.size()));
  to += text;
}

}  // namespace lmemo
