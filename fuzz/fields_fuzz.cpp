// Any bytes as a fields block (the first byte says for how many entries), and as an encoding to be split.
#include "bytes_in_memory.h"
#include "store/fields_block.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  if (size == 0) return 0;
  const uint64_t entry_count = data[0] % 8;
  const fuzz::FuzzFile file(fuzz::bytes_from(data + 1, size - 1));
  if (const auto block = FieldsBlock::parse(file.bytes(), entry_count))
    for (uint64_t ordinal = 0; ordinal < entry_count; ++ordinal) {
      const std::string encoding = block->encoding_of(ordinal, "tokens");
      fuzz::require(encoding.size() <= size + (1 << 16) + 16);
      block->has(ordinal, 0);
      block->number_of(encoding);
    }

  std::vector<std::string_view> fields;
  const std::string_view text = text_of(file.bytes());
  if (split_encoding(text, fields)) {
    // What is split can be built and comes back.
    const std::string built = build_fields_block(1, [&](size_t) { return text; });
    const auto block = FieldsBlock::parse(bytes_of(built), 1);
    fuzz::require(block.has_value());
    for (const std::string_view field : fields) {
      const auto number = block->number_of(field);
      fuzz::require(number && block->has(0, *number));
    }
    const auto kind_bytes = static_cast<uint8_t>(text[0]);
    if (text.size() <= UINT16_MAX) fuzz::require(block->encoding_of(0, text.substr(1, kind_bytes)) == text);
  }
  return 0;
}
