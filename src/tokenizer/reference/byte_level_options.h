// What ByteLevel says in a tokenizer.json: the same as a pre-tokenizer, a post-processor and a decoder.
#pragma once

#include "tokenizer/json_fields.h"

namespace lmemo::tokenizer {

struct ByteLevelOptions {
  bool adds_space = false;
  bool uses_regex = true;
};

inline Result<ByteLevelOptions> byte_level_options_in(const Fields& fields) {
  ByteLevelOptions options;
  LMEMO_TRY(fields.expect_only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  LMEMO_TRY(fields.expect_no_null({"use_regex"}));
  LMEMO_ASSIGN(options.adds_space, fields.flag("add_prefix_space"));
  LMEMO_TRY(fields.flag("trim_offsets"));  // Of offsets, which we do not give.
  LMEMO_ASSIGN(options.uses_regex, fields.flag_or("use_regex", true));
  return options;
}

}  // namespace lmemo::tokenizer
