// A tensor record of any bytes, read and copied out.
#include <vector>

#include "lmemo/activations.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const Result<std::vector<TensorView>> tensors = read_tensors(std::as_bytes(std::span(data, size)));
  if (!tensors.ok()) return 0;
  for (const TensorView& tensor : *tensors) {
    if (tensor.byte_count() > 1 << 22) continue;
    std::vector<std::byte> out(tensor.byte_count());
    static_cast<void>(copy_elements(tensor, tensor.type, out.data()));
  }
  return 0;
}
