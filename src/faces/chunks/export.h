// The rows of a set in the formats of others: each row one sequence, without padding.
//
//   megatron   DIR/rows.bin and rows.idx, as megatron-core's IndexedDataset opens them
//   mds        DIR as mosaicml-streaming opens it: input_ids, seq_lengths
//   arrow      DIR as datasets.load_from_disk opens it: input_ids, seq_lengths
//   npy        DIR/tokens.npy, row_offsets.npy, seq_lengths.npy, piece_offsets.npy, all one-dimensional
#pragma once

#include <string>

#include "base/file_system.h"
#include "lmemo/chunks.h"
#include "lmemo/progress.h"

namespace lmemo::chunks {

// `directory` must not be there yet; a part of an export is removed.
Status export_rows(const ChunkSet& set, const std::string& format, const Path& directory, const Watch& watch);

}  // namespace lmemo::chunks
