// A section's bytes from a store: refused, or all of its ids can be unpacked.
#include <cstdint>
#include <vector>

#include "bytes_in_memory.h"
#include "faces/sections/section_value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const auto section = decode_section(fuzz::bytes_from(data, size));
  if (!section) return 0;
  std::vector<uint32_t> ids(section->count());
  unpack_tokens(section->ids, section->width, ids.data());
  const std::string again = encode_section(ids, section->width);
  fuzz::require(again.size() == size);
  return 0;
}
