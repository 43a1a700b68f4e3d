// The parts of a regex that stand for one code point: escapes and [classes].
#pragma once

#include <optional>

#include "tokenizer/reference/regex_scanner.h"
#include "tokenizer/reference/regex_set.h"

namespace lmemo::tokenizer {

struct ClassItem {
  std::optional<CodePointSet> set;  // Or else the one:
  char32_t code_point = 0;
};

// Requires: the scanner stands at a backslash.
Result<ClassItem> parse_escape(RegexScanner& scan);

// Requires: the scanner stands at '['.
Result<CodePointSet> parse_class(RegexScanner& scan, bool is_caseless);

}  // namespace lmemo::tokenizer
