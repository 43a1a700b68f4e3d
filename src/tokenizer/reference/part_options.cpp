#include "tokenizer/reference/part_options.h"

#include "tokenizer/unicode/code_points.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace lmemo::tokenizer {

PartOptions::PartOptions(const nlohmann::json& json, std::string where)
    : json_(json), where_(std::move(where)) {}

Error PartOptions::refuse(const std::string& message) const {
  return {ErrorCode::incompatible, "tokenizer.json, " + where_ + ": " + message};
}

Error PartOptions::missing(const char* name, const char* wanted) const {
  return refuse(std::string("'") + name + "' is not " + wanted);
}

const nlohmann::json* PartOptions::find(const char* name) {
  known_.emplace_back(name);
  if (!json_.is_object()) return nullptr;
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

Result<std::string> PartOptions::type() { return text("type"); }

Result<bool> PartOptions::boolean(const char* name, std::optional<bool> otherwise) {
  const nlohmann::json* found = find(name);
  if (found == nullptr && otherwise) return *otherwise;
  if (found == nullptr || !found->is_boolean()) return missing(name, "true or false");
  return found->get<bool>();
}

Result<std::string> PartOptions::text(const char* name, std::optional<std::string> otherwise) {
  const nlohmann::json* found = find(name);
  if (found == nullptr && otherwise) return *std::move(otherwise);
  if (found == nullptr || !found->is_string()) return missing(name, "a string");
  return found->get<std::string>();
}

Result<size_t> PartOptions::word(const char* name, const std::vector<std::string_view>& words,
                                 std::optional<size_t> otherwise) {
  if (otherwise && (!json_.is_object() || !json_.contains(name))) return find(name), *otherwise;
  LMEMO_ASSIGN(const std::string found, text(name));
  const auto place = std::find(words.begin(), words.end(), found);
  if (place == words.end())
    return refuse(std::string("'") + name + "' is '" + found + "', which is not known here");
  return static_cast<size_t>(place - words.begin());
}

Result<size_t> PartOptions::count(const char* name, std::optional<size_t> otherwise) {
  const nlohmann::json* found = find(name);
  if (found == nullptr && otherwise) return *otherwise;
  if (found == nullptr || !found->is_number_unsigned()) return missing(name, "a whole number");
  return found->get<size_t>();
}

Result<char32_t> PartOptions::character(const char* name, std::optional<char32_t> otherwise) {
  const nlohmann::json* found = find(name);
  if (found == nullptr && otherwise) return *otherwise;
  LMEMO_ASSIGN(const std::string found_text, text(name));
  const std::u32string characters = code_points_of(found_text);
  if (characters.size() != 1) return missing(name, "one character");
  return characters[0];
}

Status PartOptions::refuse_others() const {
  if (!json_.is_object()) return refuse("is not an object");
  for (const auto& item : json_.items())
    if (std::find(known_.begin(), known_.end(), item.key()) == known_.end())
      return refuse("the option '" + item.key() + "' is not known here");
  return {};
}

}  // namespace lmemo::tokenizer
