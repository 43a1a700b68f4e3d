// Any bytes as a kinds block; what it holds can be written and read again.
#include "bytes_in_memory.h"
#include "store/kinds_block.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const fuzz::FuzzFile file(fuzz::bytes_from(data, size));
  const auto kinds = parse_kinds_block(file.bytes());
  if (!kinds) return 0;
  for (const std::string& kind : *kinds) fuzz::require(!kind.empty() && kind.size() <= kMaxKindBytes);
  fuzz::require(parse_kinds_block(bytes_of(build_kinds_block(*kinds))) == kinds);
  return 0;
}
