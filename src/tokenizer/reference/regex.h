// A small backtracking regex engine over code points. It finds what Oniguruma finds inside HuggingFace's Split and
// Replace: leftmost, the first alternative that leads to a match. What it does not know is refused when the pattern is
// compiled (regex_syntax.h says what it knows).
//
//   LMEMO_ASSIGN(const Regex regex, Regex::compile(R"(\p{L}+|\s+(?!\S))"));
//   for (const Match& match : regex.find_all(code_points_of(text))) …
#pragma once

#include <string_view>
#include <vector>

#include "lmemo/result.h"
#include "tokenizer/reference/regex_program.h"

namespace lmemo::tokenizer {

struct Match {
  size_t begin, end;  // Code points.
};

class Regex {
 public:
  static Result<Regex> compile(std::string_view utf8_pattern);
  // Matches exactly this text, wherever it stands.
  static Regex literal(std::string_view utf8_text);

  // Whether it may match without taking a character.
  bool may_be_empty() const { return program_.may_be_empty; }

  // From left to right, without overlap. An empty match directly behind another one does not count.
  std::vector<Match> find_all(std::u32string_view text) const;

 private:
  explicit Regex(RegexProgram program) : program_(std::move(program)) {}

  RegexProgram program_;
};

}  // namespace lmemo::tokenizer
