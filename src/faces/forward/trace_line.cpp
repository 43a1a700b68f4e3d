#include "faces/forward/trace_line.h"

#include <charconv>
#include <cmath>
#include <cstdint>

namespace lmemo {
namespace {

constexpr int kMaxDepth = 64;

void append_utf8_or_surrogate(std::string& out, uint32_t point) {
  const auto continued = [&](int shift) { out += static_cast<char>(0x80 | (point >> shift & 63)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 | point >> 6);
    continued(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | point >> 12);
    continued(6);
    continued(0);
  } else {
    out += static_cast<char>(0xF0 | point >> 18);
    continued(12);
    continued(6);
    continued(0);
  }
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  Error wrong(const char* what) const {
    return {ErrorCode::corruption, std::string(what) + " at column " + std::to_string(at_ + 1)};
  }

  char peek() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' || text_[at_] == '\n'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char expected) {
    if (peek() != expected) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    peek();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<std::string> text() {
    if (!take('"')) return wrong("a text was expected");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char letter = text_[at_++];
      if (static_cast<unsigned char>(letter) < 0x20) return wrong("a control character");
      if (letter != '\\') {
        out += letter;
        continue;
      }
      if (at_ == text_.size()) break;
      const char escape = text_[at_++];
      constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
      if (const size_t place = kEscapes.find(escape); place != std::string_view::npos) {
        out += kMeanings[place];
      } else if (escape == 'u') {
        LMEMO_ASSIGN(uint32_t point, hex());
        if (point >= 0xD800 && point < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
          const size_t before = at_;
          at_ += 2;
          LMEMO_ASSIGN(const uint32_t low, hex());
          if (low >= 0xDC00 && low < 0xE000) {
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
          } else {
            at_ = before;
          }
        }
        append_utf8_or_surrogate(out, point);
      } else {
        return wrong("an unknown escape");
      }
    }
    if (at_ == text_.size()) return wrong("a text without an end");
    ++at_;
    return out;
  }

  Result<double> number() {
    peek();
    double value = 0;
    const char* const first = text_.data() + at_;
    const char* const last = text_.data() + text_.size();
    // from_chars also takes "inf" and "nan", which JSON does not know.
    if (first == last || (*first != '-' && (*first < '0' || *first > '9')))
      return wrong("a number was expected");
    const auto end = std::from_chars(first, last, value);
    if (end.ec != std::errc() || !std::isfinite(value)) return wrong("a number was expected");
    at_ += static_cast<size_t>(end.ptr - first);
    return value;
  }

  Result<bool> boolean() {
    if (take_word("true")) return true;
    if (take_word("false")) return false;
    return wrong("true or false was expected");
  }

  // Whatever value comes next, as it is written.
  Result<std::string_view> skip(int depth = 0) {
    const char first = peek();
    const size_t start = at_;
    if (depth > kMaxDepth) return wrong("too deep");
    if (first == '"') {
      LMEMO_TRY(text());
    } else if (first == '{' || first == '[') {
      const char last = first == '{' ? '}' : ']';
      ++at_;
      while (!take(last)) {
        if (first == '{') {
          LMEMO_TRY(text());
          if (!take(':')) return wrong("':' was expected");
        }
        LMEMO_TRY(skip(depth + 1));
        if (peek() != last && !take(',')) return wrong("',' was expected");
      }
    } else if (!take_word("null") && !take_word("true") && !take_word("false")) {
      LMEMO_TRY(number());
    }
    return text_.substr(start, at_ - start);
  }

  // A text, or whatever else somebody has for a name, as it is written.
  Result<std::string> text_or_written() {
    if (peek() == '"') return text();
    LMEMO_ASSIGN(const std::string_view written, skip());
    return std::string(written);
  }

  bool is_at_end() {
    peek();
    return at_ == text_.size();
  }

 private:
  Result<uint32_t> hex() {
    uint32_t value = 0;
    for (int digit = 0; digit < 4; ++digit) {
      const char letter = at_ < text_.size() ? text_[at_] : '\0';
      if (letter >= '0' && letter <= '9')
        value = value * 16 + static_cast<uint32_t>(letter - '0');
      else if (letter >= 'a' && letter <= 'f')
        value = value * 16 + static_cast<uint32_t>(letter - 'a' + 10);
      else if (letter >= 'A' && letter <= 'F')
        value = value * 16 + static_cast<uint32_t>(letter - 'A' + 10);
      else
        return wrong("four hex digits were expected");
      ++at_;
    }
    return value;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

enum Member : unsigned {
  kTs = 1,
  kWall = 2,
  kHit = 4,
  kOp = 8,
  kView = 16,
  kPrompt = 32,
  kTopK = 64,
  kAll = 127
};

Status read_member(Cursor& cursor, const std::string& name, TraceLine& line, unsigned& found) {
  if (name == "ts") {
    LMEMO_ASSIGN(line.time_seconds, cursor.number());
    found |= kTs;
  } else if (name == "wall_ms") {
    LMEMO_ASSIGN(line.wall_ms, cursor.number());
    found |= kWall;
  } else if (name == "hit") {
    LMEMO_ASSIGN(line.is_hit, cursor.boolean());
    found |= kHit;
  } else if (name == "waited") {
    LMEMO_ASSIGN(line.has_waited, cursor.boolean());
  } else if (name == "op") {
    LMEMO_ASSIGN(line.op, cursor.text_or_written());
    found |= kOp;
  } else if (name == "view_id") {
    LMEMO_ASSIGN(line.view_id, cursor.text_or_written());
    found |= kView;
  } else if (name == "prompt_hash") {
    LMEMO_ASSIGN(line.prompt_hash, cursor.text());
    found |= kPrompt;
  } else if (name == "probe" && cursor.peek() == '"') {
    LMEMO_ASSIGN(line.probe, cursor.text());
  } else {
    LMEMO_ASSIGN(const std::string_view written, cursor.skip());
    if (name == "error") line.has_failed = written != "null";
    if (name == "top_k") {
      line.top_k = written;
      found |= kTopK;
    }
  }
  return {};
}

}  // namespace

Result<TraceLine> read_trace_line(std::string_view text) {
  Cursor cursor(text);
  TraceLine line;
  unsigned found = 0;
  if (!cursor.take('{')) return cursor.wrong("'{' was expected");
  if (!cursor.take('}')) {
    do {
      LMEMO_ASSIGN(const std::string name, cursor.text());
      if (!cursor.take(':')) return cursor.wrong("':' was expected");
      LMEMO_TRY(read_member(cursor, name, line, found));
    } while (cursor.take(','));
    if (!cursor.take('}')) return cursor.wrong("'}' was expected");
  }
  if (!cursor.is_at_end()) return cursor.wrong("the end was expected");
  if (line.wall_ms < 0) return Error{ErrorCode::corruption, "wall_ms is negative"};
  constexpr const char* kNames[] = {"ts", "wall_ms", "hit", "op", "view_id", "prompt_hash", "top_k"};
  for (unsigned bit = 0; bit < 7; ++bit)
    if ((found & 1u << bit) == 0)
      return Error{ErrorCode::corruption, std::string(kNames[bit]) + " is missing"};
  return line;
}

}  // namespace lmemo
