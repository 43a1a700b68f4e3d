// A tensor record of any bytes, read and copied out; what is read without an allocation is the same.
#include <cstdlib>
#include <vector>

#include "lmemo/activations.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const Bytes record = std::as_bytes(std::span(data, size));
  const Result<std::vector<TensorView>> tensors = read_tensors(record);
  if (const std::optional<RowsView> rows = read_plain_rows(record)) {
    const bool is_same = tensors.ok() && tensors->size() == 1 && !tensors->front().is_compressed &&
                         tensors->front().type == rows->type &&
                         tensors->front().shape == std::vector<uint64_t>{rows->rows, rows->columns} &&
                         tensors->front().stored.data() == rows->stored.data() &&
                         tensors->front().stored.size() == rows->stored.size();
    if (!is_same) std::abort();
  }
  if (!tensors.ok()) return 0;
  for (const TensorView& tensor : *tensors) {
    if (tensor.byte_count() > 1 << 22) continue;
    std::vector<std::byte> out(tensor.byte_count());
    static_cast<void>(copy_elements(tensor, tensor.type, out.data()));
  }
  return 0;
}
