// Hands out parts of a private, writable mapping of a file (MAP_PRIVATE: a page that is written to becomes the process's own).
//
//   OwnPart part = own_parts::take(private_mapping + offset, file_bytes.subspan(offset, length));
//   part.data()[0] = …;   // Never reaches the file.
//
// Between two holders a part is as the file is: the pages that one holder wrote to are dropped when it is given back, which also gives
// their memory back. Which ones these are, /proc/self/pagemap says; where it says nothing, all are. A page at either end may belong to
// a neighbour's part as well; then only the part's own bytes in it are put right.
//
// Rejected: a mapping for each holder (115 KB: 4 µs, 10 with the page faults); dropping all pages at once (0.5 µs, but 10 more for
// the page faults of the next holder; asking takes half a microsecond).
#pragma once

#include "lmemo/bytes.h"
#include "lmemo/own_part.h"

namespace lmemo::own_parts {

// `part` is the private mapping's view of what `file_bytes` shows. Both must stay mapped while the part is held. Empty if somebody
// holds some of it already.
OwnPart take(std::byte* part, Bytes file_bytes);

// Whoever has handlers around fork() and calls these while holding a lock registers them after this.
void prepare_for_fork();

}  // namespace lmemo::own_parts
