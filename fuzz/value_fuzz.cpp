// Any bytes as a stored result: read without a crash; arrays unpack into exactly the memory they ask for.
#include "faces/forward/value_codec.h"

#include <vector>

#include "bytes_in_memory.h"

namespace {

void look(lmemo::ValueReader& reader, int depth) {
  using namespace lmemo;
  if (depth > kMaxValueDepth) return;
  const auto item = reader.next();
  if (!item.ok()) return;
  const bool is_array =
      item->tag == ValueTag::array || item->tag == ValueTag::tensor || item->tag == ValueTag::scalar;
  if (is_array) {
    fuzz::require(item->array_bytes() <= 8 * item->data.size());
    std::vector<std::byte> elements(item->array_bytes());
    item->unpack_array(elements.data());
  }
  for (uint64_t i = 0; i < item->count * (item->tag == ValueTag::dict ? 2 : 1); ++i) {
    if (item->tag == ValueTag::record && !reader.field_name().ok()) return;
    look(reader, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const fuzz::FuzzFile file(fuzz::bytes_from(data, size));
  if (!check_value(file.bytes()).ok()) return 0;
  ValueReader reader(file.bytes());
  fuzz::require(reader.begin().ok());
  look(reader, 0);
  fuzz::require(reader.end().ok());
  return 0;
}
