#include "tokenizer/json_fields.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tokenizer/reference/utf8_chars.h"

namespace lmemo::tokenizer {
namespace {

using Json = nlohmann::json;

Error wrong_type(const std::string& where, const std::string& expected, const Json& found) {
  return refusal(where, "expected " + expected + ", found " + found.type_name());
}

}  // namespace

Error refusal(const std::string& where, const std::string& what) {
  return {ErrorCode::incompatible, "tokenizer.json, " + where + ": " + what};
}

std::string shown(std::string_view text) {
  constexpr size_t kMaxShown = 80;
  if (text.size() <= kMaxShown) return "\"" + std::string(text) + "\"";
  size_t end = kMaxShown;  // Not in the middle of a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return "\"" + std::string(text.substr(0, end)) + "…\"";
}

Result<Fields> Fields::of(const Json& json, const std::string& where) {
  if (!json.is_object()) return wrong_type(where, "an object", json);
  return Fields(json, where);
}

Status Fields::expect_only(std::initializer_list<std::string_view> names) const {
  for (const auto& [key, value] : json_->items())
    if (std::find(names.begin(), names.end(), key) == names.end())
      return refusal(where_, "option " + shown(key) + " is not known");
  return {};
}

Status Fields::expect_no_null(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names)
    if (json_->contains(name) && !find(name)) return refusal(where(name), "expected a value, found null");
  return {};
}

const Json* Fields::find(std::string_view name) const {
  const auto found = json_->find(name);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

Error Fields::missing(std::string_view name) const { return refusal(where_, shown(name) + " is missing"); }

Result<const Json*> Fields::get(std::string_view name) const {
  if (const Json* value = find(name)) return value;
  return missing(name);
}

Result<std::string> Fields::text(std::string_view name) const {
  LMEMO_ASSIGN(const Json* value, get(name));
  return text_in(*value, where(name));
}

Result<std::optional<std::string>> Fields::optional_text(std::string_view name) const {
  const Json* value = find(name);
  if (!value) return std::optional<std::string>();
  LMEMO_ASSIGN(std::string text, text_in(*value, where(name)));
  return std::optional<std::string>(std::move(text));
}

Result<bool> Fields::flag(std::string_view name) const {
  LMEMO_ASSIGN(const Json* value, get(name));
  if (!value->is_boolean()) return wrong_type(where(name), "true or false", *value);
  return value->get<bool>();
}

Result<bool> Fields::flag_or(std::string_view name, bool otherwise) const {
  if (!find(name)) return otherwise;
  return flag(name);
}

Result<uint64_t> Fields::number(std::string_view name, uint64_t max) const {
  LMEMO_ASSIGN(const Json* value, get(name));
  return number_in(*value, max, where(name));
}

Result<uint64_t> Fields::number_or(std::string_view name, uint64_t otherwise, uint64_t max) const {
  if (!find(name)) return otherwise;
  return number(name, max);
}

Result<std::string> Fields::character(std::string_view name) const {
  LMEMO_ASSIGN(std::string found, text(name));
  if (count_chars(found) != 1) return refusal(where(name), "expected one character, found " + shown(found));
  return found;
}

Result<size_t> Fields::word(std::string_view name, std::span<const std::string_view> words) const {
  LMEMO_ASSIGN(const std::string found, text(name));
  const auto place = std::find(words.begin(), words.end(), found);
  if (place == words.end()) return refusal(where(name), shown(found) + " is not known");
  return static_cast<size_t>(place - words.begin());
}

Result<size_t> Fields::word_or(std::string_view name, std::span<const std::string_view> words,
                               size_t otherwise) const {
  LMEMO_TRY(expect_no_null({name}));
  return find(name) ? word(name, words) : otherwise;
}

Result<const Json*> Fields::list(std::string_view name) const {
  LMEMO_ASSIGN(const Json* value, get(name));
  if (!value->is_array()) return wrong_type(where(name), "an array", *value);
  return value;
}

Result<uint64_t> number_in(const Json& json, uint64_t max, const std::string& where) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > max)
    return refusal(where, "expected a whole number from 0 to " + std::to_string(max) + ", found " +
                              (json.is_number() ? json.dump() : json.type_name()));
  return json.get<uint64_t>();
}

Result<std::string> text_in(const Json& json, const std::string& where) {
  if (!json.is_string()) return wrong_type(where, "a string", json);
  return json.get<std::string>();
}

}  // namespace lmemo::tokenizer
