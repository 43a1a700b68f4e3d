// Most characters join no other: between two of them, clusters always end. Such a character is looked up in a table,
// as long as the next one is of the kind. A stretch with others in it goes to the reference, from the plain character
// before it to the first one that another plain one follows. "\r\n" is the one cluster of plain characters.
#include "tokenizer/fast/precompiled_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

// What becomes of a code point: one of these, or where its new text lies (place << 8 | byte count).
constexpr uint32_t kKept = 0xFFFFFFFF, kMayJoin = 0xFFFFFFFE;
constexpr size_t kMaxTexts = size_t{1} << 24;

// Of these, no two that stand side by side are joined, but for cr and lf.
bool is_plain(Grapheme grapheme) {
  switch (grapheme) {
    case Grapheme::other:
    case Grapheme::cr:
    case Grapheme::lf:
    case Grapheme::control:
    case Grapheme::pictograph:
    case Grapheme::hangul_lv:
    case Grapheme::hangul_lvt: return true;
    default: return false;
  }
}

class PrecompiledText final : public TextRewriter {
 public:
  explicit PrecompiledText(const Precompiled& reference)
      : reference_(reference), records_(made_records()), newline_pair_(reference.normalize("\r\n")) {
    for (size_t c = 1; c < 128; ++c) {
      const uint32_t record = records_.of_ascii(static_cast<char>(c));
      if (c == '\r' || record == kMayJoin) continue;
      if (record == kKept)
        ascii_[c] = static_cast<char>(c);
      else if ((record & 0xFF) == 1)
        ascii_[c] = texts_[record >> 8];
    }
  }

  std::string_view rewrite(std::string_view text, std::string& scratch) const override {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    ScratchWriter out(scratch, text.size());  // There is always room for as many bytes as are left.
    for (const char* at = begin;;) {
      const char* const run = at;
      char* to = out.at;
      for (char byte; at < end && (byte = ascii_[static_cast<unsigned char>(*at)]) != 0; ++at) *to++ = byte;
      out.at = to;
      if (at == end) return out.view();

      size_t byte_count;
      if (at > run && records_.at(at, byte_count) == kMayJoin) {
        // The character before may be joined: it is done again with what follows.
        --at;
        --out.at;
      }
      at = write_some(at, end, out);
    }
  }

 private:
  // Writes what becomes of the characters up to a place where a cluster ends, which it returns.
  const char* write_some(const char* at, const char* end, ScratchWriter& out) const {
    const size_t left = static_cast<size_t>(end - at);
    if (*at == '\r' && left > 1 && at[1] == '\n') {
      out.reserve(left + newline_pair_.size());
      out.append(newline_pair_);
      return at + 2;
    }
    size_t byte_count, next_byte_count;
    const uint32_t record = records_.at(at, byte_count);
    const char* const next = at + byte_count;
    if (record == kMayJoin || (next < end && records_.at(next, next_byte_count) == kMayJoin)) {
      const char* const joined_end = end_of_joined(at, end);
      const std::string made = reference_.normalize({at, static_cast<size_t>(joined_end - at)});
      out.reserve(left + made.size());
      out.append(made);
      return joined_end;
    }
    if (record == kKept) {
      out.append({at, byte_count});
    } else {
      const std::string_view made = std::string_view(texts_).substr(record >> 8, record & 0xFF);
      out.reserve(left + made.size());
      out.append(made);
    }
    return next;
  }

  // The first place between two plain characters behind one that may join.
  const char* end_of_joined(const char* at, const char* end) const {
    bool has_joined = false, is_behind_plain = false;
    while (at < end) {
      size_t byte_count;
      const bool may_join = records_.at(at, byte_count) == kMayJoin;
      if (!may_join && is_behind_plain && has_joined && !(at[-1] == '\r' && *at == '\n')) return at;
      has_joined = has_joined || may_join;
      is_behind_plain = !may_join;
      at += byte_count;
    }
    return end;
  }

  std::vector<uint32_t> made_records() {
    std::vector<uint32_t> records(kCodePoints, kMayJoin);
    for (const auto& [first, last, properties] : property_ranges()) {
      if (!is_plain(static_cast<Grapheme>(properties.grapheme))) continue;
      std::fill(records.begin() + first, records.begin() + last + 1, kKept);
    }
    for (char32_t first = 0; first < kCodePoints; first += 64) {
      if (first >= 0xD800 && first < 0xE000) continue;  // In no text.
      const std::string character = utf8_of(std::u32string_view(&first, 1));
      if (!reference_.map().has_below(std::string_view(character).substr(0, character.size() - 1))) continue;
      for (char32_t c = first; c < first + 64; ++c)
        if (records[c] == kKept) records[c] = record_of(c);
    }
    return records;
  }

  uint32_t record_of(char32_t c) {
    const std::optional<std::string_view> made =
        reference_.map().replacement_of(utf8_of(std::u32string_view(&c, 1)));
    if (!made) return kKept;
    if (made->size() > 0xFF || texts_.size() + made->size() >= kMaxTexts) return kMayJoin;
    const auto place = static_cast<uint32_t>(texts_.size());
    texts_ += *made;
    return place << 8 | static_cast<uint32_t>(made->size());
  }

  const Precompiled& reference_;
  std::string texts_;
  const CodePointTable<uint32_t> records_;
  const std::string newline_pair_;
  std::array<char, 256> ascii_{};  // What each byte becomes; 0: not one byte, or not of ASCII, or "\r".
};

}  // namespace

std::unique_ptr<TextRewriter> make_precompiled_text(const Precompiled& reference) {
  return std::make_unique<PrecompiledText>(reference);
}

}  // namespace lmemo::tokenizer
