// Compressed byte planes of any bytes: the first two say how many numbers are expected.
#include <cstdlib>
#include <vector>

#include "codec/half_planes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  if (size < 2) return 0;
  std::vector<uint16_t> numbers(data[0] | data[1] << 8);
  const Bytes bytes = std::as_bytes(std::span(data + 2, size - 2));
  if (!decompress_halves(bytes, numbers).ok()) return 0;
  std::string again;
  std::vector<uint16_t> back(numbers.size());
  if (!compress_halves(numbers, again).ok() || !decompress_halves(bytes_of(again), back).ok() ||
      back != numbers)
    std::abort();
  return 0;
}
