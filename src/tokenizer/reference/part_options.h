// Reads the options of one part of a tokenizer.json and names what is missing, wrong or unknown, and where.
//
//   PartOptions fields(json, "pre_tokenizer.pretokenizers[1]");
//   LMEMO_ASSIGN(const bool invert, fields.boolean("invert"));
//   LMEMO_TRY(fields.refuse_others());
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lmemo/result.h"

namespace lmemo::tokenizer {

class PartOptions {
 public:
  // Requires: `json` outlives this.
  PartOptions(const nlohmann::json& json, std::string where);

  // The part's "type".
  Result<std::string> type();

  // Without a default, a missing field is refused.
  Result<bool> boolean(const char* name, std::optional<bool> otherwise = std::nullopt);
  Result<std::string> text(const char* name, std::optional<std::string> otherwise = std::nullopt);
  // One of `words`: its place among them.
  Result<size_t> word(const char* name, const std::vector<std::string_view>& words,
                      std::optional<size_t> otherwise = std::nullopt);
  Result<size_t> count(const char* name, std::optional<size_t> otherwise = std::nullopt);
  Result<char32_t> character(const char* name, std::optional<char32_t> otherwise = std::nullopt);
  // nullptr if it is missing or null.
  const nlohmann::json* find(const char* name);
  // HF writes it, we have no use for it.
  void ignore(const char* name) { known_.emplace_back(name); }

  // After all known fields were asked for.
  Status refuse_others() const;

  Error refuse(const std::string& message) const;
  std::string where_is(const char* name) const { return where_ + "." + name; }

 private:
  Error missing(const char* name, const char* wanted) const;

  const nlohmann::json& json_;
  const std::string where_;
  std::vector<std::string> known_;
};

}  // namespace lmemo::tokenizer
