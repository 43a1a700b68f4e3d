// Documents come from anywhere: a message or an answer, never a crash.
#include <cstdint>
#include <string_view>

#include "sources/frontmatter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)lmemo::parse_frontmatter({reinterpret_cast<const char*>(data), size}).ok();
  return 0;
}
