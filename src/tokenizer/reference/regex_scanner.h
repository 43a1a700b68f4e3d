// Where a regex parser stands in its pattern, and how it says what it does not know.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "lmemo/result.h"
#include "tokenizer/unicode/code_points.h"

namespace lmemo::tokenizer {

class RegexScanner {
 public:
  explicit RegexScanner(std::u32string_view pattern) : pattern_(pattern) {}

  bool at_end() const { return at_ >= pattern_.size(); }
  size_t position() const { return at_; }

  // 0 behind the end.
  char32_t peek(size_t ahead = 0) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : 0; }
  void skip(size_t count) { at_ += count; }

  bool take(std::u32string_view text) {
    if (!pattern_.substr(std::min(at_, pattern_.size())).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  Error refuse(const std::string& what) const { return refuse_at(at_, what); }
  Error refuse_before(const std::string& what) const { return refuse_at(at_ - 1, what); }
  Error refuse_at(size_t position, const std::string& what) const {
    const std::u32string_view rest = pattern_.substr(std::min(position, pattern_.size()));
    const std::string shown = rest.empty() ? "the end" : "'" + utf8_of(rest.substr(0, 12)) + "'";
    return {ErrorCode::incompatible,
            "regex: " + what + " is not supported, at character " + std::to_string(position) + ": " + shown};
  }

 private:
  std::u32string_view pattern_;
  size_t at_ = 0;
};

}  // namespace lmemo::tokenizer
