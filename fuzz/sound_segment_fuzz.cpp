// The same, with every checksum made right first: otherwise hardly anything behind the checksums would ever be reached.
#include "look_at_segment.h"
#include "support/handmade_segment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  lmemo::test::fix_all_checksums(bytes);
  lmemo::fuzz::look_at_segment(lmemo::bytes_of(bytes));
  return 0;
}
