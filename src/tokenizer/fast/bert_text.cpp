// Every step of BertNormalizer looks at one character, but for one: strip_accents puts marks in order before it drops
// them. Marks that are not dropped are few ("in context" below); a run that begins with one is left to the reference.
#include "tokenizer/fast/bert_text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tokenizer/fast/code_point_table.h"
#include "tokenizer/reference/utf8_chars.h"
#include "tokenizer/unicode/code_points.h"
#include "tokenizer/unicode/mappings.h"
#include "tokenizer/unicode/properties.h"

namespace lmemo::tokenizer {
namespace {

// What becomes of a code point: one of these, or where its new text lies (place << 8 | byte count).
constexpr uint32_t kKept = 0xFFFFFFFF, kSetApart = 0xFFFFFFFE, kInContext = 0xFFFFFFFD;
constexpr uint32_t kRemoved = 0;

bool is_mark(char32_t c) { return properties_of(c).combining_class != 0; }

class BertText final : public TextRewriter {
 public:
  BertText(const BertTextOptions& options, const Normalizer& reference)
      : options_(options), reference_(reference), records_(made_records()) {
    for (size_t c = 1; c < 128; ++c) {
      const uint32_t record = records_.of_ascii(static_cast<char>(c));
      if (record == kKept)
        ascii_[c] = static_cast<char>(c);
      else if ((record & 0xFF) == 1)
        ascii_[c] = texts_[record >> 8];
    }
  }

  std::string_view rewrite(std::string_view text, std::string& scratch) const override {
    ScratchWriter out(scratch, text.size());  // There is always room for as many bytes as are left.
    const char* const end = text.data() + text.size();
    for (const char* at = text.data();;) {
      char* to = out.at;
      for (char byte; at < end && (byte = ascii_[static_cast<unsigned char>(*at)]) != 0; ++at) *to++ = byte;
      out.at = to;
      if (at == end) return out.view();
      at = write_one(at, end, out);
    }
  }

 private:
  // Writes what becomes of the next character, or of a few; returns where they end.
  const char* write_one(const char* at, const char* end, ScratchWriter& out) const {
    size_t byte_count;
    const uint32_t record = records_.at(at, byte_count);
    const std::string_view character(at, byte_count);
    const size_t left = static_cast<size_t>(end - at);
    if (record == kKept) {
      out.append(character);
    } else if (record == kSetApart) {
      out.reserve(left + 2);
      *out.at++ = ' ';
      out.append(character);
      *out.at++ = ' ';
    } else if (record == kInContext) {
      const char* const context_end = end_of_context(at + byte_count, end);
      const std::string made = reference_.normalize({at, static_cast<size_t>(context_end - at)});
      out.reserve(left + made.size());
      out.append(made);
      return context_end;
    } else {
      const std::string_view made = std::string_view(texts_).substr(record >> 8, record & 0xFF);
      out.reserve(left + made.size());
      out.append(made);
    }
    return at + byte_count;
  }

  // The next character that stays, and begins with what is not a mark.
  const char* end_of_context(const char* at, const char* end) const {
    while (at < end) {
      const std::string_view rest(at, static_cast<size_t>(end - at));
      const char32_t c = char_at(rest, 0);
      const bool is_removed = options_.cleans_text && has_flag(c, kBertRemoved);
      if (!is_removed && !is_mark(decomposed(std::u32string(1, c), false)[0])) break;
      at += char_bytes(rest, 0);
    }
    return at;
  }

  uint32_t record_by_asking(char32_t c) {
    if (options_.cleans_text && has_flag(c, kBertRemoved)) return kRemoved;
    if (options_.strips_accents)
      for (const char32_t part : decomposed(std::u32string(1, c), false))
        if (is_mark(part) && !has_flag(part, kBertAccent)) return kInContext;
    const std::string before = utf8_of(std::u32string(1, c));
    const std::string made = reference_.normalize(before);
    if (made == before) return kKept;
    const auto place = static_cast<uint32_t>(texts_.size());
    texts_ += made;
    return place << 8 | static_cast<uint32_t>(made.size());
  }

  std::vector<uint32_t> made_records() {
    std::vector<uint32_t> records(kCodePoints, kKept);
    for (const auto& [first, last, properties] : property_ranges()) {
      const auto fill = [&](uint32_t record) {
        std::fill(records.begin() + first, records.begin() + last + 1, record);
      };
      if (options_.cleans_text && (properties.flags & kBertRemoved))
        fill(kRemoved);
      else if (options_.sets_chinese_apart && (properties.flags & kBertChinese))
        fill(kSetApart);
      else if ((properties.flags & (kBertBlank | kBertAccent)) || properties.combining_class != 0)
        for (char32_t c = first; c <= last; ++c) records[c] = record_by_asking(c);
    }
    for (const char32_t c : mapped_code_points()) records[c] = record_by_asking(c);
    return records;
  }

  const BertTextOptions options_;
  const Normalizer& reference_;
  std::string texts_;
  const CodePointTable<uint32_t> records_;
  std::array<char, 256> ascii_{};  // What each byte becomes; 0: not one byte, or not of ASCII.
};

}  // namespace

std::unique_ptr<TextRewriter> make_bert_text(const BertTextOptions& options, const Normalizer& reference) {
  return std::make_unique<BertText>(options, reference);
}

}  // namespace lmemo::tokenizer
