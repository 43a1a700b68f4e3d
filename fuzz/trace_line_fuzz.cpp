// Any bytes as a line of a trace: read or refused in words; what is read is whole.
#include "faces/forward/trace_line.h"

#include <cmath>

#include "bytes_in_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const fuzz::FuzzFile file(fuzz::bytes_from(data, size));
  const auto line = read_trace_line(text_of(file.bytes()));
  if (!line.ok()) {
    fuzz::require(!line.error().message.empty());
    return 0;
  }
  fuzz::require(std::isfinite(line->wall_ms) && line->wall_ms >= 0 && std::isfinite(line->time_seconds));
  fuzz::require(!line->top_k.empty());
  fuzz::require(line->op.size() + line->view_id.size() + line->prompt_hash.size() <= size);
  return 0;
}
