// Whatever the bytes, a memory is refused or every entry can be looked at.
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "sources/stat_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string file = "/tmp/lmemo-stat-memory-fuzz-" + std::to_string(getpid());
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  if (const auto memory = lmemo::StatMemory::load_any(file))
    for (size_t i = 0; i < memory->size(); ++i)
      if (memory->path(i).size() > size || memory->entry(i).verdict > lmemo::FileVerdict::not_utf8)
        __builtin_trap();
  return 0;
}
