// Any bytes as a tokenizer.json: a tokenizer or a refusal; and what loads must encode and decode without harm.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lmemo/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tokenizer = lmemo::Tokenizer::from_json({reinterpret_cast<const char*>(data), size});
  if (!tokenizer.ok()) return 0;
  for (const std::string_view text : {"", "a b ab aab <s>x", "\xC3\xA9\xE2\x96\x81 1,\n\n'S"}) {
    const auto ids = (*tokenizer)->encode(text);
    if (ids.ok()) (void)(*tokenizer)->decode(*ids);
  }
  return 0;
}
