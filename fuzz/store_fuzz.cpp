// Any bytes, with every checksum made right, as a segment in a store beside an honest one: open, scan, find, explain,
// verify, repair, compact. The honest entry is always found, and repair always leaves a clean store.
#include "bytes_in_memory.h"
#include "store/disk_store.h"
#include "support/forgetful_file_system.h"
#include "support/handmade_segment.h"

namespace {

using namespace lmemo;

std::unique_ptr<Store> open_on(FileSystem& files) {
  StoreOptions options;
  options.segment_bytes = 64 << 10;
  auto store = open_disk_store("/store", options, {&files, &system_clock()});
  fuzz::require(store.ok());
  return std::move(*store);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string evil(reinterpret_cast<const char*>(data), size);
  test::fix_all_checksums(evil);
  const Key honest = *Key::of("tokens", {{"section", "nobody else has this one"}});
  test::HandmadeSegment good;
  good.add(honest, "honest");

  test::ForgetfulFileSystem files;
  fuzz::require(open_on(files)->flush().ok());
  files.set_contents("/store/segments/1000000000000000-1122334455667788.seg", good.finish());
  files.set_contents("/store/segments/2000000000000000-0000000000000001.seg", evil);
  files.set_contents("/store/writing/3000000000000000-0000000000000001.part", evil);
  const auto check_honest = [&](Store& store) {
    const auto hit = store.find(honest);
    fuzz::require(hit && text_of(hit->value()) == "honest");
  };
  {
    const auto store = open_on(files);
    check_honest(*store);
    const Status scanned = store->scan({}, [&](const EntryInfo& entry) {
      if (const auto key = entry.key(); key.ok()) fuzz::require(key->digest() == entry.digest);
      [[maybe_unused]] const auto hit = store->find(entry.digest);
      return true;
    });
    fuzz::require(scanned.ok() && store->explain(*Key::of("tokens", {{"section", "x"}})).ok());
    fuzz::require(store->verify().ok());
    fuzz::require(store->repair().ok());
    const auto after = store->verify();
    fuzz::require(after.ok() && after->is_clean());
    check_honest(*store);
    fuzz::require(store->compact().ok());
    fuzz::require(store->verify()->is_clean());
  }
  check_honest(*open_on(files));
  return 0;
}
