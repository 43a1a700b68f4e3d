#include "cli/field_words.h"

#include <charconv>
#include <optional>
#include <variant>

#include "base/hex.h"
#include "base/near_name.h"

namespace lmemo::cli {
namespace {

template <typename Number>
std::optional<Number> parsed_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Error bad_field(std::string_view word, const std::string& problem) {
  return Error{ErrorCode::invalid_argument, "field \"" + std::string(word) + "\": " + problem};
}

struct ValueAdder {
  JsonWriter& json;
  void plain(std::string_view type, const auto& content) const {
    json.member("type", type);
    json.member("value", content);
  }
  void operator()(std::monostate) const {
    json.member("type", "none");
    json.member_null("value");
  }
  void operator()(bool truth) const { plain("bool", truth); }
  void operator()(int64_t number) const { plain("int", number); }
  void operator()(double number) const { plain("float", number); }
  void operator()(const std::string& text) const { plain("text", text); }
  void operator()(const Blob& blob) const { plain("bytes", to_hex(bytes_of(blob.bytes))); }
  void operator()(const LongValue& long_value) const {
    json.member("type", long_value.is_text ? "long_text" : "long_bytes");
    json.member("byte_count", long_value.byte_count);
    json.member("sha256", long_value.sha256.hex());
  }
};

}  // namespace

std::string describe_fields(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields)
    text += (text.empty() ? "" : " ") + field.name + "=" + field.value.describe();
  return text;
}

void add_value(JsonWriter& json, const FieldValue& value) { std::visit(ValueAdder{json}, value.variant()); }

void add_fields(JsonWriter& json, std::string_view member, const std::vector<Field>& fields) {
  json.begin_array(member);
  for (const Field& field : fields) {
    json.begin_object();
    json.member("name", field.name);
    add_value(json, field.value);
    json.end_object();
  }
  json.end_array();
}

Result<Field> parse_field(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return bad_field(
        word, "expected NAME=VALUE, or NAME:TYPE=VALUE with TYPE text, int, float, bool, bytes or none");
  const std::string_view left = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  const size_t colon = left.rfind(':');
  const std::string name(left.substr(0, colon));
  const std::string type(colon == std::string_view::npos ? "text" : left.substr(colon + 1));

  if (type == "text") return Field{name, value};
  if (type == "int") {
    if (const auto number = parsed_number<int64_t>(value)) return Field{name, *number};
    return bad_field(word, "expected a whole number of 64 bits");
  }
  if (type == "float") {
    if (const auto number = parsed_number<double>(value)) return Field{name, *number};
    return bad_field(word, "expected a number such as 0.5");
  }
  if (type == "bool") {
    if (value == "true" || value == "false") return Field{name, value == "true"};
    return bad_field(word, "expected true or false");
  }
  if (type == "bytes") {
    if (auto bytes = from_hex(value)) return Field{name, Blob{std::move(*bytes)}};
    return bad_field(word, "expected an even number of hexadecimal digits");
  }
  if (type == "none") {
    if (value.empty()) return Field{name, FieldValue()};
    return bad_field(word, "none has no value; expected nothing after the =");
  }
  return bad_field(word, "unknown type \"" + type + "\"; expected text, int, float, bool, bytes or none." +
                             did_you_mean(type, {"text", "int", "float", "bool", "bytes", "none"}));
}

}  // namespace lmemo::cli
