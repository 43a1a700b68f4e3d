// Every byte of a small store cut, every byte flipped. Promises 5 and 7: nothing false is ever shown, all that is
// undamaged is found at once, verify names the damage, repair leaves a clean store with everything that was sound.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "steady_clock.h"
#include "store/disk_store.h"
#include "store/record_scan.h"
#include "support/forgetful_file_system.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

const Path kRoot = "/store";

StoreOptions small_options() {
  StoreOptions options;
  options.segment_bytes = 64 << 10;
  options.publish_seconds = 3600;
  return options;
}

std::unique_ptr<Store> open_on(FileSystem& files, const Clock& clock,
                               StoreOptions options = small_options()) {
  Result<std::unique_ptr<Store>> store = open_disk_store(kRoot, std::move(options), {&files, &clock});
  REQUIRE_MESSAGE(store.ok(), (store.ok() ? "" : store.error().describe()));
  return std::move(*store);
}

Key key_of(const std::string& kind, int number) {
  return *Key::of(kind, {{"number", number}, {"model", "small@1"}, {"flag", number % 2 == 0}});
}

std::string value_of(int number, size_t byte_count) {
  std::string value(byte_count, '\0');
  for (size_t i = 0; i < byte_count; ++i) value[i] = static_cast<char>(number * 31 + static_cast<int>(i * i));
  return value;
}

// Three segments and the access times of a run: several kinds, an empty value, overwritten and erased keys.
struct SmallStore {
  ForgetfulFileSystem files;
  SteadyClock clock;
  std::map<Digest, Key> keys;

  void put(Store& store, const Key& key, const std::string& value) {
    keys.emplace(key.digest(), key);
    REQUIRE(store.put(key, bytes_of(value)).ok());
  }

  SmallStore() {
    const size_t sizes[] = {0, 1, 7, 8, 9, 63, 200, 600};
    {
      const auto store = open_on(files, clock);
      for (int i = 0; i < 8; ++i)
        put(*store, key_of(i % 3 == 0 ? "forward" : "tokens", i), value_of(i, sizes[i]));
      put(*store, key_of("tokens", 1), value_of(101, 40));  // Twice in one segment.
      REQUIRE(store->flush().ok());
      put(*store, key_of("tokens", 2), value_of(102, 30));  // In two segments.
      REQUIRE(*store->erase(key_of("tokens", 4)));
      put(*store, key_of("activation", 20), value_of(20, 100));
      put(*store, key_of("activation", 21), value_of(21, 20));
      REQUIRE(*store->erase(key_of("activation", 21)));  // Gone within its own segment.
      REQUIRE(store->flush().ok());
    }
    clock.advance_seconds(7200);
    const auto store = open_on(files, clock);
    REQUIRE(store->find(key_of("tokens", 5)).has_value());
    put(*store, key_of("forward", 30), value_of(30, 16));
  }
};

struct StoredRecord {
  Path file;
  uint64_t offset, end;
  Digest digest;
  int64_t written_ns;
  std::optional<std::string> value;  // Absent: an erasure.
};

std::vector<StoredRecord> records_of(const ForgetfulFileSystem& files) {
  std::vector<StoredRecord> records;
  for (const Path& path : files.files()) {
    const std::string bytes = files.contents(path);
    if (bytes.size() < sizeof(SegmentHeader)) continue;
    const auto header = load_le<SegmentHeader>(bytes.data());
    scan_records(bytes_of(bytes), header.nonce, [&](uint64_t offset, const RecordView& record) {
      std::optional<std::string> value;
      if (record.header.type == RecordType::value) value = text_of(record.value);
      records.push_back(
          {path, offset, offset + record.byte_count, record.header.digest, record.header.written_ns, value});
    });
  }
  return records;
}

// What a store with these records shows for each digest. A lost record hides what is older, if the index tells of it.
using Shown = std::map<Digest, std::optional<std::string>>;
Shown shown_by(const std::vector<StoredRecord>& records,
               const std::function<bool(const StoredRecord&)>& is_lost, bool index_tells) {
  std::map<Digest, int64_t> newest;
  Shown shown;
  for (const StoredRecord& record : records) {
    const bool lost = is_lost(record);
    if ((lost && !index_tells) ||
        (newest.contains(record.digest) && newest[record.digest] > record.written_ns))
      continue;
    newest[record.digest] = record.written_ns;
    shown[record.digest] = lost ? std::nullopt : record.value;
  }
  return shown;
}

std::string text_of_value(const std::optional<Hit>& hit) { return std::string(text_of(hit->value())); }

// True if every key shows exactly what it should.
void check_shown(Store& store, const SmallStore& original, const Shown& expected) {
  for (const auto& [digest, key] : original.keys) {
    const auto found = expected.find(digest);
    const std::optional<std::string> should = found == expected.end() ? std::nullopt : found->second;
    const std::optional<Hit> hit = store.find(digest);
    REQUIRE(hit.has_value() == should.has_value());
    if (hit) REQUIRE(text_of_value(hit) == *should);
  }
}

void check_scan_and_explain(Store& store, const SmallStore& original, const Shown& expected) {
  std::set<Digest> seen;
  REQUIRE(store
              .scan({},
                    [&](const EntryInfo& entry) {
                      seen.insert(entry.digest);
                      const auto known = original.keys.find(entry.digest);
                      REQUIRE(known != original.keys.end());
                      if (const Result<Key> key = entry.key(); key.ok()) REQUIRE(*key == known->second);
                      return true;
                    })
              .ok());
  for (const auto& [digest, value] : expected)
    if (value && original.keys.contains(digest)) REQUIRE(seen.contains(digest));

  const Result<Explanation> explained = store.explain(key_of("tokens", 99));
  REQUIRE(explained.ok());
  if (explained->nearest) REQUIRE(original.keys.contains(explained->nearest->digest()));
}

struct Damaged {
  Path file;
  bool must_be_reported = true;
  std::optional<Digest> lost;  // If the index knows it.
};

// The whole life of a damaged store. `image` is the disk with the damage on it.
void check_damage(ForgetfulFileSystem& image, const SmallStore& original, const Shown& expected,
                  const Damaged& damaged) {
  {
    const auto store = open_on(image, original.clock);
    check_scan_and_explain(*store, original, expected);
    check_shown(*store, original, expected);
    const Result<VerifyReport> report = store->verify();
    REQUIRE(report.ok());
    if (damaged.must_be_reported) {
      REQUIRE(!report->damage.empty());
      bool is_named = !damaged.lost;
      for (const Damage& damage : report->damage) {
        REQUIRE(kRoot / damage.file == damaged.file);
        is_named |= damage.digest == damaged.lost;
      }
      REQUIRE(is_named);
    } else {
      REQUIRE(report->is_clean());
    }
    REQUIRE(store->repair().ok());
    check_shown(*store, original, expected);
    const Result<VerifyReport> after = store->verify();
    REQUIRE(after.ok());
    REQUIRE(after->is_clean());
  }
  const auto store = open_on(image, original.clock);
  check_shown(*store, original, expected);
  REQUIRE(store->verify()->is_clean());
  for (const Path& path : image.files()) REQUIRE(path.parent_path() != kRoot / "writing");
}

// Every position at full scale; evenly spread ones below it.
std::vector<size_t> positions_below(size_t end) {
  std::vector<size_t> positions;
  const size_t count =
      static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(end), scaled(static_cast<int64_t>(end))));
  for (size_t i = 0; i < count; ++i) positions.push_back(i * end / count);
  return positions;
}

std::vector<Path> segments_of(const ForgetfulFileSystem& files) {
  std::vector<Path> segments;
  for (const Path& path : files.files())
    if (path.parent_path() == kRoot / "segments") segments.push_back(path);
  return segments;
}

const auto nothing_is_lost = [](const StoredRecord&) { return false; };

TEST_CASE("the small store is as interesting as the tests below think") {
  const SmallStore original;
  const auto segments = segments_of(original.files);
  CHECK(segments.size() == 3);
  const auto records = records_of(original.files);
  size_t erasures = 0, access_records = 0, empty_values = 0;
  for (const StoredRecord& record : records) {
    erasures += !record.value;
    access_records += !original.keys.contains(record.digest) && record.value;
    empty_values += record.value && record.value->empty();
  }
  CHECK(erasures == 2);
  CHECK(access_records == 1);
  CHECK(empty_values == 1);
  const auto image = original.files.after_kill();
  check_damage(*image, original, shown_by(records, nothing_is_lost, true), {{}, false, {}});
}

TEST_CASE("a segment cut anywhere keeps the records before the cut") {
  const SmallStore original;
  const auto records = records_of(original.files);
  for (const Path& path : segments_of(original.files)) {
    const std::string whole = original.files.contents(path);
    for (const size_t cut : positions_below(whole.size())) {
      CAPTURE(path);
      CAPTURE(cut);
      const auto image = original.files.after_kill();
      image->set_contents(path, std::string_view(whole).substr(0, cut));
      const Shown expected = shown_by(
          records, [&](const StoredRecord& record) { return record.file == path && record.end > cut; },
          false);
      check_damage(*image, original, expected, {path, true, {}});
    }
  }
}

void flip_every_byte(const SmallStore& original, const std::function<char(size_t)>& mask_at) {
  const auto records = records_of(original.files);
  for (const Path& path : segments_of(original.files)) {
    const std::string whole = original.files.contents(path);
    for (const size_t position : positions_below(whole.size())) {
      CAPTURE(path);
      CAPTURE(position);
      std::string bytes = whole;
      bytes[position] = static_cast<char>(bytes[position] ^ mask_at(position));
      const auto image = original.files.after_kill();
      image->set_contents(path, bytes);
      const auto is_hit = [&](const StoredRecord& record) {
        return record.file == path && record.offset <= position && position < record.end;
      };
      Damaged damaged{path, true, {}};
      for (const StoredRecord& record : records) {
        if (!is_hit(record)) continue;
        // One that a later record of the same segment replaced is not in the index: nothing is lost with it.
        const bool is_replaced = std::any_of(records.begin(), records.end(), [&](const StoredRecord& other) {
          return other.file == path && other.digest == record.digest && other.written_ns > record.written_ns;
        });
        if (!is_replaced) damaged.lost = record.digest;
      }
      check_damage(*image, original, shown_by(records, is_hit, true), damaged);
    }
  }
}

TEST_CASE("a flipped bit anywhere costs at most the record it is in") {
  const SmallStore original;
  flip_every_byte(original, [](size_t position) { return static_cast<char>(1 << (position * 5 % 8)); });
}

TEST_CASE("an inverted byte anywhere costs at most the record it is in") {
  const SmallStore original;
  flip_every_byte(original, [](size_t) { return '\xff'; });
}

// --- A dead writer's private file. Promise 6: its records are taken over up to the first torn one.

struct DeadWriter {
  SmallStore store;
  std::unique_ptr<ForgetfulFileSystem> image;
  Path part;

  DeadWriter() {
    const auto living = open_on(store.files, store.clock);
    store.put(*living, key_of("tokens", 40), value_of(40, 50));
    store.put(*living, key_of("tokens", 5), value_of(105, 10));
    REQUIRE(*living->erase(key_of("tokens", 6 + 1)));
    store.put(*living, key_of("forward", 41), value_of(41, 0));
    image = store.files.after_kill();
    for (const Path& path : image->files())
      if (path.parent_path() == kRoot / "writing") part = path;
    REQUIRE(!part.empty());
  }
};

void check_salvage(const DeadWriter& dead, std::string_view bytes, uint64_t first_bad_byte) {
  const auto image = dead.image->after_kill();
  image->set_contents(dead.part, bytes);
  const Shown expected = shown_by(
      records_of(*dead.image),
      [&](const StoredRecord& record) { return record.file == dead.part && record.end > first_bad_byte; },
      false);
  {
    StoreOptions read_only = small_options();
    read_only.read_only = true;
    const auto reader = open_on(*image, dead.store.clock, read_only);
    REQUIRE(reader->verify()->leftovers.size() == 1);
    REQUIRE(image->contents(dead.part) == bytes);  // Promise 8: reading changes nothing.
  }
  check_damage(*image, dead.store, expected, {{}, false, {}});
}

TEST_CASE("a dead writer's file cut anywhere is taken over up to the cut") {
  const DeadWriter dead;
  const std::string whole = dead.image->contents(dead.part);
  for (const size_t cut : positions_below(whole.size() + 1)) {
    CAPTURE(cut);
    check_salvage(dead, std::string_view(whole).substr(0, cut), cut);
  }
}

TEST_CASE("a dead writer's file flipped anywhere is taken over up to the flip") {
  const DeadWriter dead;
  const std::string whole = dead.image->contents(dead.part);
  for (const size_t position : positions_below(whole.size())) {
    CAPTURE(position);
    std::string bytes = whole;
    bytes[position] = static_cast<char>(bytes[position] ^ (position % 2 == 0 ? '\xff' : '\x10'));
    check_salvage(dead, bytes, position < sizeof(SegmentHeader) ? 0 : position);
  }
}

}  // namespace
}  // namespace lmemo::test
