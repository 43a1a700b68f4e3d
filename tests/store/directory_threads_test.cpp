// Readers find, mark and take back while one writer replaces, moves and removes: what is found is always a whole record of the
// right digest, and never an older one than was there when the find began.
#include <doctest/doctest.h>

#include <thread>

#include "base/sha256.h"
#include "store/directory.h"
#include "support/forgetful_file_system.h"
#include "support/handmade_segment.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

constexpr int kKeys = 40;
Digest digest_of(int number) { return sha256(bytes_of(std::to_string(number))); }

// Every key once, with values as long as the time at which they were written.
std::shared_ptr<Segment> segment_at(int64_t written_ns) {
  HandmadeSegment made;
  const Key key = *Key::of("k", {});
  for (int i = 0; i < kKeys; ++i)
    made.add(digest_of(i), text_of(key.encoding()), std::string(static_cast<size_t>(written_ns % 1000), 'v'),
             written_ns);
  made.sort_index();
  ForgetfulFileSystem files;
  files.set_contents("/x", made.finish());
  return *Segment::open(files, "/x");
}

TEST_CASE("readers see whole records, and never older ones than they could have") {
  Directory directory;
  std::shared_ptr<Segment> current = segment_at(1);
  directory.add({current});
  std::atomic<int64_t> newest{1};
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0}, ready{0}, started{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r)
    readers.emplace_back([&, r] {
      ++started;
      for (int n = r; !is_over; ++n) {
        const int64_t at_least = newest;
        Directory::Place place;
        if (!directory.find(digest_of(n % kKeys), place)) {
          ++wrong;
          continue;
        }
        const IndexEntry& entry = place.segment->entry(place.ordinal);
        if (entry.digest != digest_of(n % kKeys) || place.written_ns != entry.written_ns ||
            place.value.size() != static_cast<size_t>(entry.written_ns % 1000) ||
            place.value.data() != place.segment->unchecked_value(place.ordinal).data() ||
            place.written_ns < at_least)
          ++wrong;
        ready += place.is_ready;
        if (n % 3 != 0) directory.mark_ready(*place.segment, place.ordinal);
        if (n % 17 == 0) directory.take_back_ready(*place.segment, place.ordinal);
      }
    });
  while (started < 3) std::this_thread::yield();
  for (int64_t time = 2; time < test::scaled(3000, 200); ++time) {
    const std::shared_ptr<Segment> next = segment_at(time);
    directory.add({next});
    newest = time;
    directory.remove(current);
    current = next;
    if (time % 8 == 0) std::this_thread::yield();
  }
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(ready > 0);
}

}  // namespace
}  // namespace lmemo::test
