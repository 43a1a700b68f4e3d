// toml++ 3.3, Debian's, was tried first: the fuzzer found undefined behaviour within a second, for a table header
// such as [!] and for letters such as ä where its table of white space has a hole.
#include "cli/config_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>

#include "base/utf8.h"

namespace lmemo::cli {
namespace {

using Value = decltype(ConfigEntry::value);

bool is_bare_key_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool is_hexadecimal(char c) { return is_decimal(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// A number without its underscores, each of which must stand between two digits.
std::optional<std::string> without_underscores(std::string_view number, bool (*is_digit)(char)) {
  std::string plain;
  for (size_t at = 0; at < number.size(); ++at) {
    if (number[at] != '_') {
      plain += number[at];
    } else if (at == 0 || at + 1 == number.size() || !is_digit(number[at - 1]) || !is_digit(number[at + 1])) {
      return std::nullopt;
    }
  }
  return plain;
}

std::optional<Value> whole_number(std::string_view word) {
  int base = 10;
  for (const auto& [prefix, prefix_base] : {std::pair{"0x", 16}, {"0o", 8}, {"0b", 2}})
    if (word.starts_with(prefix)) base = prefix_base;
  std::string_view digits = word;
  const bool has_sign = base == 10 && (digits.starts_with('+') || digits.starts_with('-'));
  digits.remove_prefix(base != 10 ? 2 : has_sign ? 1 : 0);
  if (digits.empty() || (base == 10 && digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  if (!is_bare_key_byte(digits[0]) || digits[0] == '-') return std::nullopt;  // No second sign.
  const auto plain = without_underscores(digits, base == 16 ? is_hexadecimal : is_decimal);
  if (!plain) return std::nullopt;
  const std::string text = (word.starts_with('-') ? "-" : "") + *plain;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Value> fraction(std::string_view word) {
  const double sign = word.starts_with('-') ? -1 : 1;
  std::string_view rest = word;
  if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  if (rest == "inf") return sign * std::numeric_limits<double>::infinity();
  if (rest == "nan") return std::numeric_limits<double>::quiet_NaN();
  const auto digit_at = [&](size_t at) { return at < rest.size() && is_decimal(rest[at]); };
  const size_t point = rest.find('.');
  const bool has_point = point != std::string_view::npos;
  if (!digit_at(0) || (rest[0] == '0' && (digit_at(1) || rest.starts_with("0_")))) return std::nullopt;
  if (has_point && (!digit_at(point - 1) || !digit_at(point + 1))) return std::nullopt;
  if (!has_point && rest.find_first_of("eE") == std::string_view::npos) return std::nullopt;
  const auto plain = without_underscores(rest, is_decimal);
  if (!plain) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(plain->data(), plain->data() + plain->size(), number);
  if (error != std::errc() || end != plain->data() + plain->size()) return std::nullopt;
  return sign * number;
}

class ConfigParser {
 public:
  ConfigParser(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  Result<std::vector<ConfigEntry>> parse() {
    LMEMO_TRY(check_bytes());
    if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    while (!rest_.empty()) {
      skip_blanks();
      if (rest_.starts_with('[')) {
        LMEMO_TRY(take_table());
      } else if (!at_line_end()) {
        LMEMO_TRY(take_entry());
      }
      LMEMO_TRY(take_line_end());
    }
    return std::move(entries_);
  }

 private:
  Error error(const std::string& message) const {
    return {ErrorCode::invalid_argument, file_ + ":" + std::to_string(line_) + ": " + message};
  }

  // UTF-8 without control characters: from here on only the grammar can be wrong.
  Status check_bytes() {
    uint32_t line = 1;
    for (std::string_view rest = rest_; !rest.empty();) {
      const size_t length = utf8_length(rest);
      const auto c = static_cast<unsigned char>(rest.front());
      const bool is_carriage_return = c == '\r' && rest.starts_with("\r\n");
      const bool is_control = (c < 0x20 && c != '\t' && c != '\n' && !is_carriage_return) || c == 0x7F;
      if (length == 0 || is_control) {
        line_ = line;
        return error(is_control ? "found a control character; expected text"
                                : "found bytes that are not UTF-8");
      }
      if (c == '\n') ++line;
      rest.remove_prefix(length);
    }
    return {};
  }

  void skip_blanks() {
    while (rest_.starts_with(' ') || rest_.starts_with('\t')) rest_.remove_prefix(1);
  }

  bool at_line_end() const {
    return rest_.empty() || rest_.starts_with('\n') || rest_.starts_with('\r') || rest_.starts_with('#');
  }

  Status take_line_end() {
    skip_blanks();
    if (!at_line_end()) return error("found " + shown_rest() + "; expected the end of the line");
    const size_t length = rest_.find('\n');
    if (length == std::string_view::npos) {
      rest_ = {};
    } else {
      rest_.remove_prefix(length + 1);
      ++line_;
    }
    return {};
  }

  // What stands where something else was expected, cut to a readable length.
  std::string shown_rest() const {
    constexpr size_t kShownBytes = 20;
    std::string shown;
    for (std::string_view rest = rest_; !rest.empty() && rest.front() != '\n' && rest.front() != '\r';) {
      const size_t length = utf8_length(rest);
      if (shown.size() + length > kShownBytes) return "\"" + shown + "…\"";
      shown += rest.substr(0, length);
      rest.remove_prefix(length);
    }
    return shown.empty() ? "the end of the line" : "\"" + shown + "\"";
  }

  Status take_table() {
    rest_.remove_prefix(1);
    if (rest_.starts_with('[')) return error("found [[, a list of tables; expected [NAME]");
    LMEMO_ASSIGN(table_, take_key());
    if (!rest_.starts_with(']'))
      return error("found " + shown_rest() + "; expected ] after the name of the table");
    rest_.remove_prefix(1);
    if (!tables_.insert(table_).second) return error("the table [" + table_ + "] is there twice");
    if (values_.contains(table_))
      return error("\"" + table_ + "\" already has a value; it cannot be a table as well");
    return note_tables_above(table_);
  }

  Status take_entry() {
    const uint32_t line = line_;
    LMEMO_ASSIGN(std::string key, take_key());
    if (!rest_.starts_with('=')) return error("found " + shown_rest() + "; expected = after the key");
    rest_.remove_prefix(1);
    skip_blanks();
    LMEMO_ASSIGN(Value value, take_value());
    if (!table_.empty()) key = table_ + "." + key;
    if (!values_.insert(key).second) return error("\"" + key + "\" is there twice");
    if (tables_.contains(key) || prefixes_.contains(key))
      return error("\"" + key + "\" is a table; it cannot have a value as well");
    LMEMO_TRY(note_tables_above(key));
    entries_.push_back({std::move(key), std::move(value), line});
    return {};
  }

  // "a.b.c" needs "a" and "a.b" to be tables.
  Status note_tables_above(const std::string& key) {
    for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1)) {
      const std::string above = key.substr(0, dot);
      if (values_.contains(above))
        return error("\"" + above + "\" already has a value; it cannot be a table as well");
      prefixes_.insert(above);
    }
    return {};
  }

  // Leaves the blanks after the key behind as well.
  Result<std::string> take_key() {
    constexpr int kMaxParts = 8;
    std::string key;
    for (int part = 0; part < kMaxParts; ++part) {
      skip_blanks();
      if (rest_.starts_with('"') || rest_.starts_with('\'')) {
        LMEMO_ASSIGN(const std::string quoted, take_text());
        key += quoted;
      } else {
        size_t length = 0;
        while (length < rest_.size() && is_bare_key_byte(rest_[length])) ++length;
        if (length == 0) return error("found " + shown_rest() + "; expected a key such as store");
        key += rest_.substr(0, length);
        rest_.remove_prefix(length);
      }
      skip_blanks();
      if (!rest_.starts_with('.')) return key;
      key += '.';
      rest_.remove_prefix(1);
    }
    return error("\"" + key + "\" is nested too deeply");
  }

  Result<Value> take_value() {
    if (rest_.starts_with('"') || rest_.starts_with('\'')) {
      LMEMO_ASSIGN(std::string text, take_text());
      return Value(std::move(text));
    }
    if (rest_.starts_with('[')) return error("found a list; expected a text, a number, true or false");
    if (rest_.starts_with('{'))
      return error("found a table in braces; expected a text, a number, true or false");
    const size_t length = std::min(rest_.find_first_of(" \t\r\n#"), rest_.size());
    const std::string_view word = rest_.substr(0, length);
    std::optional<Value> value;
    if (word == "true" || word == "false") value = word == "true";
    if (!value) value = whole_number(word);
    if (!value) value = fraction(word);
    if (!value)
      return error("found " + shown_rest() +
                   "; expected a text in quotes, a number of 64 bits, true or false");
    rest_.remove_prefix(length);
    return *value;
  }

  Result<std::string> take_text() {
    const char quote = rest_.front();
    if (rest_.starts_with("\"\"\"") || rest_.starts_with("'''"))
      return error("found a text over several lines; expected one line, in single quotes");
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_.front() != '\n' && rest_.front() != '\r') {
      const char c = rest_.front();
      if (c == '\\' && quote == '"') {
        LMEMO_TRY(take_escape(text));
        continue;
      }
      rest_.remove_prefix(1);
      if (c == quote) return text;
      text += c;
    }
    return error(std::string("the text has no end; expected ") + quote);
  }

  Status take_escape(std::string& text) {
    constexpr std::string_view kLetters = "btnfr\"\\";
    constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
    const Error unknown =
        error("found " + shown_rest() + " in a text; for a plain backslash write \\\\, or use single quotes");
    if (rest_.size() < 2) return unknown;
    const char letter = rest_[1];
    if (const size_t at = kLetters.find(letter); at != std::string_view::npos) {
      text += kMeanings[at];
      rest_.remove_prefix(2);
      return {};
    }
    if (letter != 'u' && letter != 'U') return unknown;
    const size_t digits = letter == 'u' ? 4 : 8;
    if (rest_.size() < 2 + digits) return unknown;
    uint32_t code_point = 0;
    const char* const begin = rest_.data() + 2;
    const auto [end, problem] = std::from_chars(begin, begin + digits, code_point, 16);
    if (problem != std::errc() || end != begin + digits || !append_utf8(text, code_point)) return unknown;
    rest_.remove_prefix(2 + digits);
    return {};
  }

  std::string_view rest_;
  const std::string& file_;
  uint32_t line_ = 1;
  std::string table_;  // The one that the next entries belong to.
  std::vector<ConfigEntry> entries_;
  std::set<std::string> values_, tables_, prefixes_;  // For what is there twice.
};

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(std::string_view bytes, const std::string& file) {
  if (bytes.size() > kMaxConfigBytes)
    return Error{ErrorCode::invalid_argument, file + ": found more than " + std::to_string(kMaxConfigBytes) +
                                                  " bytes; expected a settings file"};
  return ConfigParser(bytes, file).parse();
}

}  // namespace lmemo::cli
