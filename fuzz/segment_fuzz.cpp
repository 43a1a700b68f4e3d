// Any bytes as a segment: header, footer, index.
#include "look_at_segment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lmemo::fuzz::look_at_segment(lmemo::fuzz::bytes_from(data, size));
  return 0;
}
