#include "base/json_writer.h"

#include <cassert>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace lmemo {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) text_ += ',';
  has_items_.back() = true;
  text_ += '\n';
  text_.append(2 * has_items_.size(), ' ');
}

void JsonWriter::plain(std::string_view token) {
  before_value();
  text_ += token;
}

void JsonWriter::open(char bracket) {
  before_value();
  text_ += bracket;
  has_items_.push_back(false);
}

void JsonWriter::close(char bracket) {
  assert(!has_items_.empty() && !after_key_);
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) {
    text_ += '\n';
    text_.append(2 * has_items_.size(), ' ');
  }
  text_ += bracket;
}

void JsonWriter::begin_object() { open('{'); }
void JsonWriter::begin_object(std::string_view name) {
  key(name);
  open('{');
}
void JsonWriter::end_object() { close('}'); }
void JsonWriter::begin_array() { open('['); }
void JsonWriter::begin_array(std::string_view name) {
  key(name);
  open('[');
}
void JsonWriter::end_array() { close(']'); }

void JsonWriter::key(std::string_view name) {
  assert(!after_key_);
  before_value();
  quoted(name);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::null() { plain("null"); }
void JsonWriter::value(bool value) { plain(value ? "true" : "false"); }

void JsonWriter::value(double value) {
  if (!std::isfinite(value)) return null();
  char digits[64];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  plain({digits, static_cast<size_t>(result.ptr - digits)});
}

void JsonWriter::value(std::string_view text) {
  before_value();
  quoted(text);
}

void JsonWriter::quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  text_ += '"';
  while (!text.empty()) {
    const char c = text.front();
    const size_t length = utf8_length(text);
    if (length == 0) {
      text_ += kReplacement;
    } else if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (c == '\n') {
      text_ += "\\n";
    } else if (c == '\t') {
      text_ += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      text_ += "\\u00";
      text_ += kHex[static_cast<unsigned char>(c) >> 4];
      text_ += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

}  // namespace lmemo
