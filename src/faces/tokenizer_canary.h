// A golden canary: a fixed text is encoded whenever a tokenizer is used with a store, and must give the ids it gave the first time. An
// identity covers the file and the version of the engine; what it cannot cover is an engine that answers otherwise under the same name.
//
//   LMEMO_TRY(check_canary(store_directory, *tokenizer, identity));     // Before the first hit.
#pragma once

#include <filesystem>

#include "lmemo/bytes.h"
#include "lmemo/key.h"
#include "lmemo/result.h"
#include "lmemo/tokenizer.h"

namespace lmemo {

// incompatible if the ids are others than this store saw under this identity. A store that cannot be written is no error.
Status check_canary(const std::filesystem::path& store_directory, const Tokenizer& tokenizer,
                    const Digest& identity);
// For a store that has nothing left of any tokenizer.
void forget_canaries(const std::filesystem::path& store_directory);

}  // namespace lmemo
