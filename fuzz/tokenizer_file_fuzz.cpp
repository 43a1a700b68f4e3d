// Any bytes as a tokenizer.json: refused with its place, or a tokenizer that encodes and decodes without a crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lmemo/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const auto tokenizer = Tokenizer::from_json({reinterpret_cast<const char*>(data), size});
  if (!tokenizer.ok()) {
    if (tokenizer.error().message.find("tokenizer.json") != 0) std::abort();
    return 0;
  }
  for (const std::string_view text :
       {"", "a", " Hello, it's 123\n\n", "\xC3\xA9 \xE6\xBC\xA2\xF0\x9F\x98\x80 e\xCC\x81"}) {
    for (const bool add_special_tokens : {true, false}) {
      EncodeOptions options;
      options.add_special_tokens = add_special_tokens;
      const auto ids = (*tokenizer)->encode(text, options);
      if (!ids.ok()) continue;
      (void)(*tokenizer)->decode(*ids);
      for (const uint32_t id : *ids) (void)(*tokenizer)->id_to_token(id);
    }
  }
  if ((*tokenizer)->identity() !=
      (*Tokenizer::from_json({reinterpret_cast<const char*>(data), size}))->identity())
    std::abort();
  return 0;
}
