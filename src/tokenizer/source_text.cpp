#include "tokenizer/source_text.h"

#include <bit>
#include <cstring>
#include <string>

#include "base/cpu.h"
#include "tokenizer/utf8_blocks.h"

namespace lmemo::tokenizer {
namespace {

using Form = SourceText::Form;

constexpr size_t kBlock = 16;

// Copies units up to the first block of 16 that has one beyond ASCII; returns how many. A plain loop over a fixed
// number, which compilers turn into two or three instructions.
template <typename Unit>
size_t copy_ascii_blocks(const Unit* units, size_t count, char* out) {
  size_t at = 0;
  for (; at + kBlock <= count; at += kBlock) {
    Unit all = 0;
    for (size_t i = 0; i < kBlock; ++i) all = static_cast<Unit>(all | units[at + i]);
    if (all >= 0x80) break;
    for (size_t i = 0; i < kBlock; ++i) out[at + i] = static_cast<char>(units[at + i]);
  }
  return at;
}

// Returns where the text ends; before unit `at`, if that is half a surrogate pair or no character. Requires: room for
// kUtf8Slack more bytes than the text may have.
template <typename Unit>
char* write_utf8(const Unit* units, size_t count, char* out, size_t& at) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  for (at = 0; at < count;) {
#if defined(__x86_64__)
    if (cpu_has_avx2()) out = write_short_blocks_avx2(units, count, out, at);
#endif
    const size_t copied = copy_ascii_blocks(units + at, count - at, out);
    at += copied;
    out += copied;
    // One block at most, then perhaps ASCII goes on.
    for (const size_t end = std::min(count, at + kBlock); at < end; ++at) {
      const uint32_t c = units[at];
      if (c < 0x80) {
        *out++ = byte(c);
      } else if (c < 0x800) {
        *out++ = byte(0xC0 | c >> 6);
        *out++ = byte(0x80 | (c & 0x3F));
      } else if (c < 0x10000) {
        if (c - 0xD800 < 0x800) return out;
        *out++ = byte(0xE0 | c >> 12);
        *out++ = byte(0x80 | (c >> 6 & 0x3F));
        *out++ = byte(0x80 | (c & 0x3F));
      } else {
        if (c > 0x10FFFF) return out;
        *out++ = byte(0xF0 | c >> 18);
        *out++ = byte(0x80 | (c >> 12 & 0x3F));
        *out++ = byte(0x80 | (c >> 6 & 0x3F));
        *out++ = byte(0x80 | (c & 0x3F));
      }
    }
  }
  return out;
}

template <typename Unit>
Result<std::string_view> converted(const SourceText& text, size_t begin, size_t end, TextBuffer& buffer) {
  constexpr size_t kMostBytes = sizeof(Unit) == 1 ? 2 : sizeof(Unit) == 2 ? 3 : 4;  // Of a unit as UTF-8.
  const size_t count = end - begin;
  if (buffer.size() < count * kMostBytes + kUtf8Slack) {
    buffer.clear();  // What it holds need not be copied.
    buffer.resize(count * kMostBytes + kUtf8Slack);
  }
  size_t at = 0;
  const char* const written =
      write_utf8(static_cast<const Unit*>(text.data) + begin, count, buffer.data(), at);
  if (at < count)
    return Error{ErrorCode::invalid_argument, "character " + std::to_string(begin + at) +
                                                  " is half a surrogate pair, which UTF-8 cannot hold"};
  return std::string_view(buffer.data(), static_cast<size_t>(written - buffer.data()));
}

// By bytes, which the library finds many times as fast as wider units.
template <typename Unit>
size_t find_in(const SourceText& text, char unit, size_t at) {
  static_assert(std::endian::native == std::endian::little);
  const auto* const units = static_cast<const Unit*>(text.data);
  const auto* const bytes = static_cast<const char*>(text.data);
  const size_t byte_count = text.unit_count * sizeof(Unit);
  for (size_t from = at * sizeof(Unit); from < byte_count; ++from) {
    const void* const found = std::memchr(bytes + from, unit, byte_count - from);
    if (!found) break;
    from = static_cast<size_t>(static_cast<const char*>(found) - bytes);
    if (units[from / sizeof(Unit)] == static_cast<Unit>(unit)) return from / sizeof(Unit);
  }
  return text.unit_count;
}

}  // namespace

uint32_t unit_at(const SourceText& text, size_t at) {
  switch (text.form) {
    case Form::ucs2: return static_cast<const char16_t*>(text.data)[at];
    case Form::ucs4: return static_cast<const char32_t*>(text.data)[at];
    default: return static_cast<const unsigned char*>(text.data)[at];
  }
}

size_t find_unit(const SourceText& text, char unit, size_t at) {
  switch (text.form) {
    case Form::ucs2: return find_in<char16_t>(text, unit, at);
    case Form::ucs4: return find_in<char32_t>(text, unit, at);
    default: return find_in<char>(text, unit, at);
  }
}

Result<std::string_view> utf8_of(const SourceText& text, size_t begin, size_t end, TextBuffer& buffer) {
  switch (text.form) {
    case Form::latin1: return converted<unsigned char>(text, begin, end, buffer);
    case Form::ucs2: return converted<char16_t>(text, begin, end, buffer);
    case Form::ucs4: return converted<char32_t>(text, begin, end, buffer);
    case Form::utf8: break;
  }
  return std::string_view(static_cast<const char*>(text.data) + begin, end - begin);
}

}  // namespace lmemo::tokenizer
