// Somebody who can write into the store's directory means harm: right checksums over false content, links, pipes. He can
// take entries away, as he could by removing files. He must not make us crash, hang, grow, write elsewhere, or show a
// value that is under no record of its digest (promises 5 and 8).
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/hex.h"
#include "lmemo/inspect.h"
#include "store/disk_store.h"
#include "support/handmade_segment.h"
#include "support/temp_directory.h"
#include "support/test_scale.h"

namespace lmemo::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kGrowthLimit = uint64_t{160} << 20;

// The most memory that this process had since reset(), above what it had then.
class PeakMemory {
 public:
  PeakMemory() {
    std::ofstream("/proc/self/clear_refs") << 5;  // Peak = now.
    start_ = read("VmHWM:");
  }
  uint64_t growth() const {
    const uint64_t now = read("VmHWM:");
    return now > start_ ? now - start_ : 0;
  }

 private:
  static uint64_t read(const std::string& field) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == field) {
        uint64_t kilobytes = 0;
        status >> kilobytes;
        return kilobytes << 10;
      }
    return 0;
  }
  uint64_t start_ = 0;
};

void write_file(const Path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_file(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Key key_named(const std::string& name) { return *Key::of("tokens", {{"name", name}}); }

std::unique_ptr<Store> open_at(const Path& path) {
  StoreOptions options;
  options.segment_bytes = 64 << 10;
  Result<std::unique_ptr<Store>> store = open_store(path, options);
  REQUIRE_MESSAGE(store.ok(), (store.ok() ? "" : store.error().describe()));
  return std::move(*store);
}

const std::string kEvilName = "7fffffffffffffff-1122334455667788";

// A store with three honest entries, beside a canary that nobody may touch.
struct Victim {
  TempDirectory directory;
  Path root = directory / "store", canary = directory / "canary";

  Victim() {
    fs::create_directory(canary);
    write_file(canary / "precious", "do not touch");
    const auto store = open_at(root);
    for (const char* name : {"one", "two", "three"})
      REQUIRE(store->put(key_named(name), bytes_of(std::string("honest ") + name)).ok());
    REQUIRE(store->flush().ok());
  }
  void plant(std::string_view bytes) const { write_file(root / "segments" / (kEvilName + ".seg"), bytes); }
  void plant_private(std::string_view bytes) const {
    write_file(root / "writing" / (kEvilName + ".part"), bytes);
  }

  void check_honest_entries(Store& store) const {
    for (const char* name : {"one", "two", "three"}) {
      const std::optional<Hit> hit = store.find(key_named(name));
      REQUIRE(hit.has_value());
      CHECK(text_of(hit->value()) == std::string("honest ") + name);
    }
  }
  void check_canary() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(canary)) names.insert(entry.path().filename());
    CHECK(names == std::set<std::string>{"precious"});
    CHECK(read_file(canary / "precious") == "do not touch");
    names.clear();
    for (const auto& entry : fs::directory_iterator(directory.path())) names.insert(entry.path().filename());
    CHECK(names == std::set<std::string>{"canary", "store"});
  }
};

// Uses a store in every way there is. Whatever it finds under `allowed` must be that value; nothing else may be found.
void use_everything(const Victim& victim, Store& store, const std::map<Digest, std::string>& allowed) {
  victim.check_honest_entries(store);
  std::vector<Digest> seen;
  REQUIRE(store
              .scan({},
                    [&](const EntryInfo& entry) {
                      seen.push_back(entry.digest);
                      // Whatever key is shown is the one that has this digest.
                      if (const Result<Key> key = entry.key(); key.ok()) CHECK(key->digest() == entry.digest);
                      return true;
                    })
              .ok());
  REQUIRE(store.scan({"tokens", {{"name", "one"}}}, [](const EntryInfo&) { return true; }).ok());
  for (const auto& [digest, value] : allowed) seen.push_back(digest);
  for (const Digest& digest : seen) {
    const std::optional<Hit> hit = store.find(digest);
    if (!hit || text_of(hit->value()).starts_with("honest ")) continue;
    REQUIRE(allowed.contains(digest));
    CHECK(text_of(hit->value()) == allowed.at(digest));
  }
  CHECK(store.explain(key_named("four")).ok());
  CHECK(store.stats().entries >= 3);
}

// Plants these bytes as a segment and as a dead writer's file, and lives with them.
void live_with(const std::string& bytes, const std::map<Digest, std::string>& allowed,
               bool is_damage = true) {
  const PeakMemory memory;
  {
    const Victim victim;
    victim.plant(bytes);
    {
      const auto store = open_at(victim.root);
      use_everything(victim, *store, allowed);
      const Result<VerifyReport> report = store->verify();
      REQUIRE(report.ok());
      CHECK(report->damage.empty() == !is_damage);
      REQUIRE(store->repair().ok());
      CHECK(store->verify()->is_clean());
      use_everything(victim, *store, allowed);
      REQUIRE(store->put(key_named("new"), bytes_of("honest new")).ok());
      REQUIRE(store->flush().ok());
      CHECK(store->find(key_named("new")).has_value());
    }
    REQUIRE(inspect_file(victim.root / "segments").ok() == false);
    victim.check_honest_entries(*open_at(victim.root));
    victim.check_canary();
  }
  {
    const Victim victim;
    victim.plant(bytes);
    const auto store = open_at(victim.root);
    REQUIRE(store->compact().ok());
    REQUIRE(store->prune(1e9).ok());
    victim.check_honest_entries(*store);
    [[maybe_unused]] const auto inspected = inspect_file(victim.root / "segments" / (kEvilName + ".seg"));
  }
  {
    const Victim victim;
    victim.plant_private(bytes);
    const auto store = open_at(victim.root);
    use_everything(victim, *store, allowed);
    REQUIRE(store->repair().ok());
    CHECK(store->verify()->is_clean());
    victim.check_honest_entries(*store);
  }
  CHECK(memory.growth() < kGrowthLimit);
}

std::map<Digest, std::string> just(const Key& key, std::string value) {
  return {{key.digest(), std::move(value)}};
}

TEST_CASE("a segment made by hand is a segment") {
  HandmadeSegment segment;
  segment.add(key_named("evil"), "value");
  const Victim victim;
  victim.plant(segment.finish());
  const auto store = open_at(victim.root);
  CHECK(text_of(store->find(key_named("evil"))->value()) == "value");
  CHECK(store->verify()->is_clean());
}

TEST_CASE("index entries with sizes and offsets that overflow are refused") {
  const uint64_t evil_numbers[] = {0,
                                   8,
                                   64 + 4,
                                   uint64_t{1} << 32,
                                   (uint64_t{1} << 40) - 8,
                                   UINT64_MAX,
                                   UINT64_MAX - 7,
                                   UINT64_MAX - 63,
                                   INT64_MAX,
                                   uint64_t{1} << 63};
  for (const uint64_t number : evil_numbers)
    for (const int which : {0, 1}) {
      CAPTURE(number);
      CAPTURE(which);
      HandmadeSegment segment;
      segment.add(key_named("evil"), "value");
      (which == 0 ? segment.index[0].offset : segment.index[0].value_bytes) = number;
      live_with(segment.finish(), just(key_named("evil"), "value"));
    }
}

TEST_CASE("records that claim sizes that overflow are no records") {
  for (const uint64_t number : {uint64_t{1} << 40, (uint64_t{1} << 40) + 1, UINT64_MAX, UINT64_MAX - 7,
                                UINT64_MAX - 200, uint64_t{1} << 63}) {
    CAPTURE(number);
    HandmadeSegment segment;
    segment.add(key_named("first"), "good");
    segment.add(key_named("evil"), "value");
    segment.sort_index();
    for (const IndexEntry& entry : segment.index)
      if (entry.digest == key_named("evil").digest())
        store_le(segment.bytes.data() + entry.offset + offsetof(RecordHeader, value_bytes), number);
    live_with(segment.finish(), just(key_named("first"), "good"));
  }
}

TEST_CASE("a footer whose blocks do not fit the file is refused") {
  using Twist = std::function<void(SegmentFooter&)>;
  const std::vector<Twist> twists = {
      [](SegmentFooter& footer) { footer.entry_count = UINT64_MAX; },
      [](SegmentFooter& footer) { footer.entry_count = (uint64_t{1} << 58) + 1; },  // × 64 wraps to 64.
      [](SegmentFooter& footer) { footer.entry_count = 1 << 18; },
      [](SegmentFooter& footer) { footer.index_offset = UINT64_MAX - 63; },
      [](SegmentFooter& footer) { footer.index_offset = 0; },
      [](SegmentFooter& footer) { footer.fields_offset = UINT64_MAX; },
      [](SegmentFooter& footer) { footer.kinds_offset = UINT64_MAX; },
      [](SegmentFooter& footer) { footer.kinds_offset = footer.fields_offset - 8; },
      [](SegmentFooter& footer) { footer.footer_offset += 8; },
      [](SegmentFooter& footer) { footer.nonce ^= 1; },
  };
  for (size_t i = 0; i < twists.size(); ++i) {
    CAPTURE(i);
    HandmadeSegment segment;
    segment.add(key_named("evil"), "value");
    live_with(segment.finish(twists[i]), just(key_named("evil"), "value"));
  }
}

TEST_CASE("an index out of order, with a digest twice or a kind out of range is not used") {
  for (const int which : {0, 1, 2}) {
    CAPTURE(which);
    HandmadeSegment segment;
    segment.add(key_named("a"), "value of a");
    segment.add(key_named("b"), "value of b");
    segment.sort_index();
    if (which == 0) std::swap(segment.index[0], segment.index[1]);
    if (which == 1) segment.index[1].digest = segment.index[0].digest;
    if (which == 2) segment.index[1].kind = 7;
    live_with(segment.finish(),
              {{key_named("a").digest(), "value of a"}, {key_named("b").digest(), "value of b"}});
  }
}

TEST_CASE("a fields block that points outside, or says something else, never shows a wrong key") {
  HandmadeSegment honest;
  honest.add(key_named("a"), "value of a");
  honest.add(key_named("b"), "value of b");
  honest.sort_index();
  const std::string block = build_fields_block(2, [&](size_t ordinal) {
    return std::string_view(honest.bytes)
        .substr(honest.index[ordinal].offset + 64, honest.index[ordinal].encoding_bytes);
  });
  for (size_t word = 0; word * 4 < block.size(); ++word)
    for (const uint32_t number : {0u, 1u, 2u, 0x7fffffffu, 0xffffffffu, 0xfffffff8u}) {
      if (load_le<uint32_t>(block.data() + word * 4) == number) continue;
      CAPTURE(word);
      CAPTURE(number);
      HandmadeSegment segment = honest;
      segment.fields = block;
      store_le(segment.fields->data() + word * 4, number);
      const Victim victim;
      victim.plant(segment.finish());
      const auto store = open_at(victim.root);
      use_everything(victim, *store,
                     {{key_named("a").digest(), "value of a"}, {key_named("b").digest(), "value of b"}});
      CHECK(store->verify().ok());
      REQUIRE(store->repair().ok());
      CHECK(store->verify()->is_clean());
    }
}

TEST_CASE("a fields block that names one long field a million times does not fill the memory") {
  HandmadeSegment segment;
  segment.add(key_named("evil"), "value");
  constexpr uint32_t kReferences = 1'000'000;
  std::string fields;
  append_le(fields, uint32_t{1});  // One distinct field, of a megabyte.
  append_le(fields, kReferences);
  append_le(fields, uint32_t{0});
  append_le(fields, uint32_t{1 << 20});
  append_le(fields, uint32_t{0});
  append_le(fields, kReferences);
  fields.append(kReferences * sizeof(uint32_t), '\0');
  fields.append(1 << 20, 'x');
  segment.fields = fields;
  live_with(segment.finish(), just(key_named("evil"), "value"));
}

TEST_CASE("a kinds block with more names than bytes, or with false ones, is no trouble") {
  for (const std::string& block :
       {std::string("\xff\xff", 2), std::string("\x01\x00\x00", 3),
        std::string("\x01\x00\xff"
                    "abc",
                    6),
        std::string("\x01\x00\x03../", 6), std::string("\x02\x00\x06tokens\x06tokens", 16), std::string()}) {
    CAPTURE(block);
    HandmadeSegment segment;
    segment.add(key_named("evil"), "value");
    segment.kinds_block = block;
    const Victim victim;
    victim.plant(segment.finish());
    const auto store = open_at(victim.root);
    use_everything(victim, *store, just(key_named("evil"), "value"));
    CHECK(store->verify().ok());
    REQUIRE(store->repair().ok());
    CHECK(store->verify()->is_clean());
  }
}

TEST_CASE("a key that does not hash to its digest is reported and not kept") {
  HandmadeSegment segment;
  const Digest digest = key_named("somebody else").digest();
  segment.add(digest, text_of(key_named("evil").encoding()), "value");
  live_with(segment.finish(), {{digest, "value"}});

  HandmadeSegment nonsense;
  nonsense.add(digest, std::string("\xffnonsense"), "value");
  nonsense.kinds = {"tokens"};
  live_with(nonsense.finish(), {{digest, "value"}});
}

TEST_CASE("a made-up kind does not spoil the segment that honest records are copied to") {
  for (const std::string& encoding : {std::string(8, '\0'), std::string("\xff") + std::string(300, 'k')}) {
    HandmadeSegment segment;
    const Digest digest = key_named("somebody else").digest();
    segment.add(digest, encoding, "value");
    segment.kinds = {"tokens"};
    segment.index[0].kind = 0;
    for (const std::string& bytes : {segment.finish(), segment.bytes}) {
      const Victim victim;
      victim.plant(bytes);
      victim.plant_private(segment.bytes);
      const auto store = open_at(victim.root);
      REQUIRE(store->put(key_named("new"), bytes_of("honest new")).ok());
      REQUIRE(store->compact().ok());
      CHECK(store->verify()->is_clean());
      victim.check_honest_entries(*store);
    }
  }
}

TEST_CASE("a record inside the value of another is a record only where the index has room for both") {
  // The outer value holds a complete record with the right checksum for its place; the index names both.
  const Key outer = key_named("outer"), inner = key_named("inner");
  HandmadeSegment segment;
  std::string value(256, 'v');
  segment.add(outer, value);
  const uint64_t value_offset = 64 + 64 + padded(outer.encoding().size());
  RecordHeader header;
  header.encoding_bytes = static_cast<uint16_t>(inner.encoding().size());
  header.value_bytes = 8;
  header.written_ns = 1'800'000'000'000'000'000;
  header.digest = inner.digest();
  std::memcpy(segment.bytes.data() + value_offset, &header, sizeof header);
  std::memcpy(segment.bytes.data() + value_offset + 64, inner.encoding().data(), inner.encoding().size());
  REQUIRE(fix_record(segment.bytes, segment.nonce, value_offset));
  REQUIRE(fix_record(segment.bytes, segment.nonce, 64));
  value = segment.bytes.substr(value_offset, 256);
  const uint64_t inner_value = value_offset + 64 + padded(inner.encoding().size());
  const std::string embedded = segment.bytes.substr(inner_value, 8);
  segment.index.push_back({inner.digest(), value_offset, header.written_ns, 8, 0, header.encoding_bytes, 0});
  segment.sort_index();
  live_with(segment.finish(), {{outer.digest(), value}, {inner.digest(), embedded}});
}

TEST_CASE("records nested in one another a thousand times are not copied a thousand times") {
  // Each record's value reaches to the end of the file: copied one by one they would be 500 times as large.
  constexpr int kDepth = 1000;
  HandmadeSegment segment;
  for (int i = 0; i < kDepth; ++i) segment.add(key_named("nested " + std::to_string(i)), "");
  const uint64_t end = segment.bytes.size();
  for (int i = kDepth; i-- > 0;) {
    IndexEntry& entry = segment.index[static_cast<size_t>(i)];
    entry.value_bytes = end - entry.offset - 64 - padded(entry.encoding_bytes);
    store_le(segment.bytes.data() + entry.offset + offsetof(RecordHeader, value_bytes), entry.value_bytes);
    REQUIRE(fix_record(segment.bytes, segment.nonce, entry.offset));
  }
  segment.sort_index();
  const Victim victim;
  victim.plant(segment.finish());
  const auto store = open_at(victim.root);
  const uint64_t before = store->stats().disk_bytes;
  CHECK_FALSE(store->verify()->is_clean());
  REQUIRE(store->repair().ok());
  CHECK(store->stats().disk_bytes <= before + 4096);
  REQUIRE(store->compact().ok());
  CHECK(store->stats().disk_bytes <= before + 4096);
  victim.check_honest_entries(*store);
}

TEST_CASE("a file of headers that each claim the rest is refused in linear time") {
  // 60,000 headers over 3.8 MB: checked one by one, 115 GB of checksums per look.
  HandmadeSegment segment;
  constexpr uint64_t kHeaders = 60'000;
  const uint64_t total = 64 + kHeaders * 64;
  for (uint64_t i = 0; i < kHeaders; ++i) {
    RecordHeader header;
    header.encoding_bytes = 8;
    header.value_bytes = total - segment.bytes.size() < 72 ? 0 : total - segment.bytes.size() - 72;
    header.checksum = i;
    segment.bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
  }
  const Victim victim;
  victim.plant(segment.bytes);
  victim.plant_private(segment.bytes);
  const auto store = open_at(victim.root);
  victim.check_honest_entries(*store);
  CHECK_FALSE(store->verify()->is_clean());
  REQUIRE(store->repair().ok());
  CHECK(store->verify()->is_clean());
}

TEST_CASE("a hundred thousand kinds in one file are no trouble") {
  HandmadeSegment segment;
  for (int i = 0; i < 100'000; ++i) {
    const std::string kind = "k" + std::to_string(i);
    std::string encoding(1, static_cast<char>(kind.size()));
    encoding += kind + std::string(2, '\0');
    Digest digest;
    store_le(digest.bytes.data() + 8, uint64_t(i) * 0x9e3779b97f4a7c15);
    store_le(digest.bytes.data(), uint64_t(i) * 0x9e3779b97f4a7c15);
    const uint64_t offset = segment.bytes.size();
    RecordHeader header;
    header.encoding_bytes = static_cast<uint16_t>(encoding.size());
    header.digest = digest;
    segment.bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
    segment.bytes += encoding;
    segment.bytes.resize(padded(segment.bytes.size()));
    fix_record(segment.bytes, segment.nonce, offset);
  }
  const Victim victim;
  victim.plant(segment.bytes);
  victim.plant_private(segment.bytes);
  const auto store = open_at(victim.root);
  victim.check_honest_entries(*store);
  REQUIRE(store->repair().ok());
  CHECK(store->verify()->is_clean());
}

TEST_CASE("digests that crowd one place of the table cost finds there, not time or memory") {
  const PeakMemory memory;
  HandmadeSegment segment;
  const auto count = static_cast<uint64_t>(scaled(20'000, 2'000));
  std::map<Digest, std::string> allowed;
  for (uint64_t i = 0; i < count; ++i) {
    Digest digest;  // The same first 16 bytes, so the same slot and the same tag.
    store_le(digest.bytes.data() + 24, __builtin_bswap64(i));
    segment.add(digest, text_of(key_named("evil").encoding()), std::to_string(i));
    allowed[digest] = std::to_string(i);
  }
  const Victim victim;
  victim.plant(segment.finish());
  const auto store = open_at(victim.root);
  victim.check_honest_entries(*store);
  uint64_t found = 0;
  for (const auto& [digest, value] : allowed)
    if (const std::optional<Hit> hit = store->find(digest)) {
      ++found;
      REQUIRE(text_of(hit->value()) == value);
    }
  CHECK(found > 0);
  REQUIRE(store->compact().ok());
  victim.check_honest_entries(*store);
  CHECK(memory.growth() < kGrowthLimit);
}

TEST_CASE("stamps and minutes at the ends of time overflow nothing") {
  for (const int64_t stamp : {INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, int64_t{-1}, int64_t{0}}) {
    CAPTURE(stamp);
    HandmadeSegment segment;
    segment.add(key_named("evil"), "value", stamp);
    segment.add(key_named("gone").digest(), "", "", stamp);
    segment.index[0].accessed_minutes = UINT32_MAX;
    segment.sort_index();
    const std::string file =
        segment.finish([&](SegmentFooter& footer) { footer.oldest_ns = footer.newest_ns = stamp; });
    live_with(file, just(key_named("evil"), "value"), false);

    const Victim victim;
    victim.plant(file);
    const auto store = open_at(victim.root);
    REQUIRE(store->find(key_named("evil")).has_value());
    REQUIRE(store->put(key_named("new"), bytes_of("honest new")).ok());
    // The clock did not follow.
    CHECK(store->find(key_named("new"))->written_ns() < INT64_MAX / 2);
    CHECK(store->evict(0).ok());
    CHECK(store->prune(0).ok());
    CHECK(store->compact().ok());
    CHECK(store->clear("tokens").ok());
  }
}

// --- What is no file.

TEST_CASE("links in the store are never followed, neither to read nor to write") {
  const Victim victim;
  const Path outside = victim.canary / "precious";
  const Path segments = victim.root / "segments", writing = victim.root / "writing";
  const std::string stem = "7fffffffffffff0";
  const auto name = [&](int i, const std::string& suffix) {
    return stem + std::to_string(i) + "-1122334455667788" + suffix;
  };
  for (const auto& [folder, suffix] : {std::pair(segments, ".seg"), std::pair(writing, ".part")}) {
    fs::create_symlink(outside, folder / name(1, suffix));
    fs::create_symlink("nowhere", folder / name(2, suffix));
    fs::create_symlink(name(3, suffix), folder / name(3, suffix));
    fs::create_directory_symlink(victim.canary, folder / name(4, suffix));
    REQUIRE(::mkfifo((folder / name(5, suffix)).c_str(), 0600) == 0);
    fs::create_directory(folder / name(6, suffix));
    write_file(folder / ("..7fffffffffffff-1122334455667788" + std::string(suffix)), "x");
    write_file(folder / "..", "");  // Cannot be; nothing happens.
  }
  fs::create_symlink(outside, victim.root / "unknown");
  const auto store = open_at(victim.root);
  use_everything(victim, *store, {});
  REQUIRE(store->put(key_named("new"), bytes_of("new")).ok());
  REQUIRE(store->flush().ok());
  const Result<VerifyReport> report = store->verify();
  REQUIRE(report.ok());
  CHECK(report->damage.empty());
  CHECK(report->leftovers.empty());
  CHECK(report->foreign.size() == 2 * 7 + 1);
  REQUIRE(store->repair().ok());
  REQUIRE(store->compact().ok());
  REQUIRE(store->prune(0).ok());
  victim.check_canary();
  CHECK(fs::is_symlink(segments / name(1, ".seg")));  // Not lmemo's: left alone.
}

TEST_CASE("a private file that has another name outside is not written to") {
  const Victim victim;
  HandmadeSegment segment;
  segment.add(key_named("evil"), "value");
  const std::string bytes = segment.bytes + "torn tail";
  write_file(victim.canary / "precious", bytes);
  fs::create_hard_link(victim.canary / "precious", victim.root / "writing" / (kEvilName + ".part"));
  {
    const auto store = open_at(victim.root);
    victim.check_honest_entries(*store);
    [[maybe_unused]] const auto repaired = store->repair();
  }
  CHECK(read_file(victim.canary / "precious") == bytes);
}

TEST_CASE("a store whose inner directories are links is refused") {
  for (const char* which : {"segments", "writing"}) {
    CAPTURE(which);
    const Victim victim;
    fs::rename(victim.root / which, victim.directory / "elsewhere");
    fs::create_directory_symlink(victim.directory / "elsewhere", victim.root / which);
    const Result<std::unique_ptr<Store>> store = open_store(victim.root);
    REQUIRE_FALSE(store.ok());
    CHECK(store.error().code == ErrorCode::incompatible);
  }
}

TEST_CASE("a lock that is a link, a pipe or a directory keeps maintenance away and nothing else") {
  for (const int which : {0, 1, 2}) {
    CAPTURE(which);
    const Victim victim;
    const Path lock = victim.root / "maintenance.lock";
    fs::remove(lock);
    if (which == 0) fs::create_symlink(victim.canary / "new file", lock);
    if (which == 1) REQUIRE(::mkfifo(lock.c_str(), 0600) == 0);
    if (which == 2) fs::create_directory(lock);
    const auto store = open_at(victim.root);
    [[maybe_unused]] const auto compacted = store->compact();
    victim.check_honest_entries(*store);
    victim.check_canary();
  }
}

}  // namespace
}  // namespace lmemo::test
