#include "tokenizer/json_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/utf8.h"

namespace lmemo::tokenizer {
namespace {

// Bytes of a text that stand for themselves: neither the end, nor an escape, a control character or part of a
// character of several bytes.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

// utf8_length(), with the usual lengths told apart on the spot. At most four bytes are looked at.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const auto continues = [&](size_t at) { return at < text.size() && (byte(at) & 0xC0) == 0x80; };
  if (byte(0) >= 0xC2 && byte(0) < 0xE0 && continues(1)) return 2;
  if (byte(0) > 0xE0 && byte(0) < 0xED && continues(1) && continues(2)) return 3;
  return utf8_length(text);
}

bool is_digit(char character) { return character >= '0' && character <= '9'; }

double power_of_ten(int exponent) {
  static const std::vector<double> powers = [] {
    std::vector<double> values;
    for (int n = 0; n <= 308; ++n) values.push_back(std::strtod(("1e" + std::to_string(n)).c_str(), nullptr));
    return values;
  }();
  return powers[static_cast<size_t>(exponent)];
}

}  // namespace

JsonReader::JsonReader(std::string_view text) : text_(text) {
  if (text.size() > kMaxJsonBytes)
    refuse(std::to_string(text.size()) + " bytes; expected at most " + std::to_string(kMaxJsonBytes));
}

bool JsonReader::refuse(std::string why) {
  if (problem_.empty()) problem_ = std::move(why);
  at_ = text_.size();
  return false;
}

bool JsonReader::misplaced(const std::string& what) {
  return refuse("not JSON at byte " + std::to_string(at_) + ": " + what);
}

void JsonReader::skip_blanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
}

JsonKind JsonReader::peek() {
  skip_blanks();
  if (at_ < text_.size()) {
    const char next = text_[at_];
    if (next == '{') return JsonKind::object;
    if (next == '[') return JsonKind::array;
    if (next == '"') return JsonKind::text;
    if (next == 't' || next == 'f') return JsonKind::boolean;
    if (next == 'n') return JsonKind::null;
    if (next == '-' || is_digit(next)) return JsonKind::number;
  }
  misplaced(at_ < text_.size() ? "expected a value" : "it ends where a value is expected");
  return JsonKind::nothing;
}

bool JsonReader::open(char bracket) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != bracket) return misplaced(std::string("expected ") + bracket);
  if (open_.size() >= kMaxJsonDepth)
    return refuse("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
  ++at_;
  open_.push_back({bracket == '{' ? '}' : ']', true});
  return true;
}

bool JsonReader::open_object() { return open('{'); }
bool JsonReader::open_array() { return open('['); }

// To the next key or item; false, and the container is closed, if there is none.
bool JsonReader::next_item() {
  if (!problem_.empty()) return false;
  Open& container = open_.back();
  skip_blanks();
  if (at_ >= text_.size()) return misplaced("it ends inside of an array or an object");
  if (text_[at_] == container.closing) {
    ++at_;
    open_.pop_back();
    return false;
  }
  if (!container.is_empty) {
    if (text_[at_] != ',') return misplaced(std::string("expected , or ") + container.closing);
    ++at_;
  }
  container.is_empty = false;
  return true;
}

bool JsonReader::next_key(std::string_view& key) {
  if (!next_item() || !read_text(key)) return false;
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != ':') return misplaced("expected :");
  ++at_;
  return true;
}

bool JsonReader::read_text(std::string_view& text) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != '"') return misplaced("expected a string");
  const size_t start = ++at_;
  while (at_ < text_.size()) {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (kPlain[byte]) {
      ++at_;
    } else if (byte == '"') {
      text = text_.substr(start, at_++ - start);
      return true;
    } else if (byte == '\\') {
      return read_escaped(text, start);
    } else if (byte < 0x20) {
      return misplaced("a control character in a string");
    } else {
      const size_t length = character_bytes(text_.substr(at_, 4));
      if (length == 0) return misplaced("a string that is not UTF-8");
      at_ += length;
    }
  }
  return misplaced("it ends inside of a string");
}

// From the first backslash on; the text began at `start`.
bool JsonReader::read_escaped(std::string_view& text, size_t start) {
  std::string meant(text_.substr(start, at_ - start));
  while (at_ < text_.size()) {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte == '"') {
      ++at_;
      text = kept(meant);
      return true;
    }
    if (byte == '\\') {
      ++at_;
      if (!read_escape(meant)) return false;
      continue;
    }
    if (byte < 0x20) return misplaced("a control character in a string");
    const size_t length = character_bytes(text_.substr(at_, 4));
    if (length == 0) return misplaced("a string that is not UTF-8");
    meant.append(text_, at_, length);
    at_ += length;
  }
  return misplaced("it ends inside of a string");
}

std::string_view JsonReader::kept(std::string_view text) {
  constexpr size_t kBlockBytes = 65536;
  if (unescaped_.empty() || unescaped_.back().capacity() - unescaped_.back().size() < text.size())
    unescaped_.emplace_back().reserve(std::max(text.size(), kBlockBytes));
  std::string& block = unescaped_.back();
  block.append(text);
  return std::string_view(block).substr(block.size() - text.size());
}

bool JsonReader::read_hex(uint32_t& value) {
  value = 0;
  if (text_.size() - at_ < 4) return misplaced("expected four hexadecimal digits");
  const char* const from = text_.data() + at_;
  const auto [end, error] = std::from_chars(from, from + 4, value, 16);
  if (error != std::errc() || end != from + 4) return misplaced("expected four hexadecimal digits");
  at_ += 4;
  return true;
}

bool JsonReader::read_escape(std::string& text) {
  if (at_ >= text_.size()) return misplaced("it ends inside of a string");
  static constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (const size_t name = kNames.find(text_[at_]); name != std::string_view::npos) {
    text += kMeanings[name];
    ++at_;
    return true;
  }
  if (text_[at_] != 'u') return misplaced("an unknown escape");
  ++at_;
  uint32_t code_point = 0;
  if (!read_hex(code_point)) return false;
  if (code_point >= 0xD800 && code_point < 0xDC00) {
    uint32_t low = 0;
    if (text_.substr(at_, 2) != "\\u") return misplaced("half of a surrogate pair");
    at_ += 2;
    if (!read_hex(low)) return false;
    if (low < 0xDC00 || low > 0xDFFF) return misplaced("half of a surrogate pair");
    code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
  }
  return append_utf8(text, code_point) || misplaced("half of a surrogate pair");
}

bool JsonReader::read_number(JsonNumber& number) {
  skip_blanks();
  const size_t start = at_;
  const auto at_digit = [&] { return at_ < text_.size() && is_digit(text_[at_]); };
  const auto skip_digits = [&] {
    const size_t from = at_;
    while (at_digit()) ++at_;
    return at_ > from;
  };
  const bool is_negative = at_ < text_.size() && text_[at_] == '-';
  at_ += is_negative;
  const bool is_zero = at_digit() && text_[at_] == '0';
  if (!skip_digits() || (is_zero && at_ > start + is_negative + 1)) return misplaced("expected a number");
  bool is_whole = true;
  if (at_ < text_.size() && text_[at_] == '.') {
    is_whole = false;
    ++at_;
    if (!skip_digits()) return misplaced("expected a digit behind the point");
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    is_whole = false;
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!skip_digits()) return misplaced("expected an exponent");
  }

  const std::string_view digits = text_.substr(start, at_ - start);
  const char* const end = digits.data() + digits.size();
  if (is_whole && !is_negative && std::from_chars(digits.data(), end, number.whole).ec == std::errc()) {
    number.kind = JsonNumber::Kind::non_negative;
    number.value = static_cast<double>(number.whole);
    return true;
  }
  if (is_whole && is_negative && std::from_chars(digits.data(), end, number.below_zero).ec == std::errc()) {
    number.kind = JsonNumber::Kind::negative;
    number.value = static_cast<double>(number.below_zero);
    return true;
  }
  number.kind = JsonNumber::Kind::real;
  number.value = serde_number(digits);
  if (!std::isfinite(number.value))
    return refuse("number " + std::string(digits.substr(0, 80)) + " is out of range");
  return true;
}

bool JsonReader::take_word(std::string_view word) {
  skip_blanks();
  if (text_.substr(at_, word.size()) != word) return misplaced("expected " + std::string(word));
  at_ += word.size();
  return true;
}

bool JsonReader::read_boolean(bool& value) {
  skip_blanks();
  value = at_ < text_.size() && text_[at_] == 't';
  return take_word(value ? "true" : "false");
}

bool JsonReader::read_null() { return take_word("null"); }

bool JsonReader::finish() {
  if (!problem_.empty()) return false;
  skip_blanks();
  return at_ == text_.size() || misplaced("expected the end");
}

double serde_number(std::string_view digits) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  size_t at = 0;
  const bool is_negative = at < digits.size() && digits[at] == '-';
  if (is_negative) ++at;
  const auto is_digit = [&] { return at < digits.size() && digits[at] >= '0' && digits[at] <= '9'; };

  // Digits that no longer fit are dropped: before the point they still count as a power of ten.
  uint64_t significand = 0;
  int64_t exponent = 0;
  bool is_full = false;
  const auto take = [&] {
    const auto digit = static_cast<uint64_t>(digits[at] - '0');
    is_full = is_full || significand > (kMax - digit) / 10;
    if (!is_full) significand = significand * 10 + digit;
    return !is_full;
  };
  for (; is_digit(); ++at)
    if (!take()) ++exponent;
  if (at < digits.size() && digits[at] == '.') {
    is_full = false;  // A long integer part is tried again behind the point, as serde_json does.
    for (++at; is_digit(); ++at)
      if (take()) --exponent;
  }
  if (at < digits.size() && (digits[at] == 'e' || digits[at] == 'E')) {
    ++at;
    const bool is_small = at < digits.size() && digits[at] == '-';
    if (at < digits.size() && (digits[at] == '-' || digits[at] == '+')) ++at;
    int64_t power = 0;
    for (; is_digit(); ++at) power = std::min<int64_t>(power * 10 + (digits[at] - '0'), 100'000'000);
    exponent += is_small ? -power : power;
  }

  auto value = static_cast<double>(significand);
  while (exponent < -308 && value != 0.0) {
    value /= 1e308;
    exponent += 308;
  }
  if (value != 0.0) {
    if (exponent > 308) return std::numeric_limits<double>::infinity();
    if (exponent >= 0) {
      value *= power_of_ten(static_cast<int>(exponent));
    } else {
      value /= power_of_ten(static_cast<int>(-exponent));
    }
  }
  return is_negative ? -value : value;
}

}  // namespace lmemo::tokenizer
