// Any bytes as a pack of tokenised rows: refused, or every row is read and its lengths fit.
#include "faces/dataset/row_pack.h"

#include <numeric>
#include <vector>

#include "bytes_in_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lmemo;
  const fuzz::FuzzFile file(fuzz::bytes_from(data, size));
  const auto pack = dataset::RowPack::parse(file.bytes());
  if (!pack.ok()) return 0;
  size_t id_count = 0, run_count = 0;
  for (size_t row = 0; row < pack->size(); ++row) {
    std::vector<uint32_t> ids, runs;
    (void)pack->digest(row);
    pack->read(row, ids, runs);
    id_count += ids.size();
    run_count += runs.size();
    fuzz::require(std::accumulate(runs.begin(), runs.end(), uint64_t{0}) == ids.size());
  }
  fuzz::require(12 + 40 * pack->size() + 4 * run_count + 2 * id_count <= size);
  return 0;
}
