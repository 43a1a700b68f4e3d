// Typed access to a JSON object, with errors that name the place: "model.vocab: expected an object, found null".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

// "tokenizer.json, model.vocab: expected …"
Error refusal(const std::string& where, const std::string& what);
// For messages: quoted, and not endless.
std::string shown(std::string_view text);

class Fields {
 public:
  static Result<Fields> of(const nlohmann::json& json, const std::string& where);

  const std::string& where() const { return where_; }
  std::string where(std::string_view name) const { return where_ + "." + std::string(name); }

  // Refuses an object with any other key: an option we do not know could change ids.
  Status expect_only(std::initializer_list<std::string_view> names) const;

  // Refuses JSON's null under a name that may be left out: HuggingFace takes it for some of them, not for all.
  Status expect_no_null(std::initializer_list<std::string_view> names) const;

  // Null if there is none; JSON's null counts as none.
  const nlohmann::json* find(std::string_view name) const;
  Result<const nlohmann::json*> get(std::string_view name) const;

  Result<std::string> text(std::string_view name) const;
  Result<std::optional<std::string>> optional_text(std::string_view name) const;
  Result<bool> flag(std::string_view name) const;
  Result<bool> flag_or(std::string_view name, bool otherwise) const;
  Result<uint64_t> number(std::string_view name, uint64_t max) const;
  Result<std::string> character(std::string_view name) const;  // A text of one character.
  // One of `words`: its place among them.
  Result<size_t> word(std::string_view name, std::span<const std::string_view> words) const;
  Result<size_t> word_or(std::string_view name, std::span<const std::string_view> words,
                         size_t otherwise) const;
  Result<const nlohmann::json*> list(std::string_view name) const;
  Result<uint64_t> number_or(std::string_view name, uint64_t otherwise, uint64_t max) const;

 private:
  Fields(const nlohmann::json& json, std::string where) : json_(&json), where_(std::move(where)) {}
  Error missing(std::string_view name) const;

  const nlohmann::json* json_;
  std::string where_;
};

// A whole number from 0 to max.
Result<uint64_t> number_in(const nlohmann::json& json, uint64_t max, const std::string& where);
Result<std::string> text_in(const nlohmann::json& json, const std::string& where);

}  // namespace lmemo::tokenizer
